package images_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/images"
)

// img-5: the image is present; whether the pod gets it without a pull depends on the
// policy and on the credentials that it was pulled with, if the manager pulled it.
func TestAPresentImageMayRequireAPull(t *testing.T) {
	ann, bob := secret("a", "ann", "1"), secret("b", "bob", "2")
	const (
		preloaded = "preloaded"
		public    = "public"   // pulled by us anonymously
		private   = "private"  // with ann's secret
		node      = "node"     // with the node's credentials
		accounts  = "accounts" // with those of a service account
	)
	for name, tc := range map[string]struct {
		policy images.VerifyPolicy
		allow  []string
		image  string // "": reg.example/org/app:1
		how    string
		creds  []images.Credential
		pulls  bool
	}{
		"NeverVerify private":                           {policy: images.NeverVerify, how: private},
		"NeverVerify preloaded":                         {policy: images.NeverVerify, how: preloaded},
		"the default is NeverVerifyPreloadedImages":     {how: preloaded},
		"which verifies images that the manager pulled": {how: private, pulls: true},
		"preloaded":                                 {policy: images.NeverVerifyPreloadedImages, how: preloaded},
		"public":                                    {policy: images.NeverVerifyPreloadedImages, how: public},
		"by the node":                               {policy: images.NeverVerifyPreloadedImages, how: node},
		"the same secret":                           {how: private, creds: []images.Credential{ann}},
		"the same secret among others":              {how: private, creds: []images.Credential{bob, ann}},
		"the same secret with new content":          {how: private, creds: []images.Credential{secret("a", "ann", "9")}},
		"the same content in another secret":        {how: private, creds: []images.Credential{secret("c", "ann", "1")}},
		"another secret":                            {how: private, creds: []images.Credential{bob}, pulls: true},
		"credentials without a hash never match":    {how: private, creds: []images.Credential{secret("c", "ann", "")}, pulls: true},
		"the node's are not the secret's":           {how: private, creds: []images.Credential{nodeWide("ann")}, pulls: true},
		"the same service account":                  {how: accounts, creds: []images.Credential{account("s", "ann")}},
		"another token of the service account":      {how: accounts, creds: []images.Credential{account("s", "token")}},
		"another service account":                   {how: accounts, creds: []images.Credential{account("z", "ann")}, pulls: true},
		"a secret of that name":                     {how: accounts, creds: []images.Credential{secret("s", "ann", "1")}, pulls: true},
		"AlwaysVerify preloaded":                    {policy: images.AlwaysVerify, how: preloaded, pulls: true},
		"AlwaysVerify public":                       {policy: images.AlwaysVerify, how: public},
		"AlwaysVerify private":                      {policy: images.AlwaysVerify, how: private, creds: []images.Credential{ann}},
		"allowlist: not in it":                      {policy: images.NeverVerifyAllowlistedImages, how: preloaded, pulls: true},
		"allowlist: in it":                          {policy: images.NeverVerifyAllowlistedImages, allow: []string{"reg.example/org/app"}, how: preloaded},
		"allowlist: below it":                       {policy: images.NeverVerifyAllowlistedImages, allow: []string{"reg.example/org/*"}, how: preloaded},
		"allowlist: the registry":                   {policy: images.NeverVerifyAllowlistedImages, allow: []string{"reg.example/*"}, how: preloaded},
		"allowlist: another one":                    {policy: images.NeverVerifyAllowlistedImages, allow: []string{"reg.example/or/*", "reg.example/org/ap", "app"}, how: preloaded, pulls: true},
		"allowlist: although pulled by the manager": {policy: images.NeverVerifyAllowlistedImages, allow: []string{"reg.example/*"}, how: private, pulls: true},
		"allowlist: a short name":                   {policy: images.NeverVerifyAllowlistedImages, allow: []string{"busybox"}, image: "docker.io/library/busybox:1", how: preloaded},
		"allowlist: a long name":                    {policy: images.NeverVerifyAllowlistedImages, allow: []string{"docker.io/library/busybox"}, image: "busybox", how: preloaded},
		"allowlist: all of docker.io":               {policy: images.NeverVerifyAllowlistedImages, allow: []string{"docker.io/*"}, image: "org/app", how: preloaded},
		"allowlist: an organisation":                {policy: images.NeverVerifyAllowlistedImages, allow: []string{"org/*"}, image: "docker.io/org/app:1" + digest, how: preloaded},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				if tc.image == "" {
					tc.image = "reg.example/org/app:1"
				}
				tagged := tc.image
				if tc.image == "busybox" || tc.image == "org/app" {
					tagged += ":latest"
				}
				f := &fakeService{may: map[string][]string{tagged: {"ann"}}}
				creds := new(credentials)
				switch tc.how {
				case preloaded:
					f.has(tagged)
				case public:
					f.may[tagged] = []string{""}
				case private:
					creds.set("first", ann)
				case node:
					creds.set("first", nodeWide("ann"))
				case accounts:
					creds.set("first", account("s", "ann"))
				}
				cfg := images.Config{Service: f, Credentials: creds, Dir: dir, Verify: tc.policy, VerifyAllowlist: tc.allow}
				if tc.how != preloaded {
					_, err := newManager(t, cfg).Ensure(t.Context(), images.Request{Pod: podOf("first"), Image: tc.image})
					require.NoError(t, err)
					require.Len(t, f.pulled(), 1)
				}
				f.may[tagged] = []string{"ann", "bob", "token", ""}
				creds.set("second", tc.creds...)
				// A restarted agent with the same files decides as the first.
				m := newManager(t, cfg)
				seen := new(events)
				_, err := m.Ensure(t.Context(), seen.of(podOf("second"), tc.image, v1.PullNever))
				if tc.pulls {
					require.EqualError(t, err, `Container image "`+tc.image+`" is not present with pull policy of Never`)
					require.Equal(t, []string{`Warning ErrImageNeverPull ` + err.Error()}, seen.take())
				} else {
					require.NoError(t, err)
					require.Equal(t, []string{`Normal Pulled Container image "` + tc.image + `" already present on machine and can be accessed by the pod`}, seen.take())
				}
				_, err = m.Ensure(t.Context(), images.Request{Pod: podOf("second"), Image: tc.image})
				require.NoError(t, err)
				assert.Equal(t, tc.pulls, len(f.pulled()) == 1)

				// The pod's credentials are verified now, and the image is not pulled again.
				_, err = newManager(t, cfg).Ensure(t.Context(), images.Request{Pod: podOf("second"), Image: tc.image, PullPolicy: v1.PullNever})
				require.NoError(t, err)
			})
		})
	}
}

func TestAPullThatIsForcedMayBeRefused(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{may: map[string][]string{"img:1": {"ann"}}}
		creds := new(credentials)
		creds.set("first", secret("a", "ann", "1"))
		creds.set("second", secret("b", "bob", "2"))
		m := newManager(t, images.Config{Service: f, Credentials: creds, Dir: dir})
		_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("first"), Image: "img:1"})
		require.NoError(t, err)
		_, err = m.Ensure(t.Context(), images.Request{Pod: podOf("second"), Image: "img:1"})
		require.EqualError(t, err, `img:1: "bob" is unauthorized`)
		_, err = m.Ensure(t.Context(), images.Request{Pod: podOf("second"), Image: "img:1"})
		require.Equal(t, "ImagePullBackOff", why(t, err))
		_, err = m.Ensure(t.Context(), images.Request{Pod: podOf("first"), Image: "img:1"})
		require.NoError(t, err)
		assert.Equal(t, []string{"ann img:1", "bob img:1"}, f.pulled())
	})
}

// The record of one name does not grant access to the image under another name: the
// registry may protect them differently.
func TestTheSameImageUnderAnotherNameIsVerified(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{may: map[string][]string{"img:1": {""}, "reg.example/img:1": {"ann"}}}
		m := newManager(t, images.Config{Service: f, Dir: dir})
		_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "img:1"})
		require.NoError(t, err)
		f.local["reg.example/img:1"], f.local["docker.io/library/img:1"] = f.local["img:1"], f.local["img:1"]
		_, err = m.Ensure(t.Context(), images.Request{Pod: podOf("b"), Image: "reg.example/img:1"})
		require.Equal(t, "ErrImagePull", why(t, err))
		// Another spelling of the name is the same name.
		_, err = m.Ensure(t.Context(), images.Request{Pod: podOf("b"), Image: "docker.io/library/img:1"})
		require.NoError(t, err)
	})
}

// While an image is pulled for one pod, another pod must not take it for preloaded as
// soon as it is present.
func TestAnImageIsNotPreloadedWhileItIsPulled(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{may: map[string][]string{"img:1": {"ann"}}, takes: 2 * time.Second}
		creds := new(credentials)
		creds.set("first", secret("a", "ann", "1"))
		m := newManager(t, images.Config{Service: f, Credentials: creds, Dir: dir})
		done := make(chan error, 1)
		go func() {
			_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("first"), Image: "img:1"})
			done <- err
		}()
		time.Sleep(time.Second)
		f.has("img:1")
		_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("second"), Image: "img:1", PullPolicy: v1.PullNever})
		require.Equal(t, "ErrImageNeverPull", why(t, err))
		require.NoError(t, <-done)
		_, err = m.Ensure(t.Context(), images.Request{Pod: podOf("first"), Image: "img:1", PullPolicy: v1.PullNever})
		require.NoError(t, err)
	})
}
