package images_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/images"
)

const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestImagesAreEnsuredByTheirPolicy(t *testing.T) {
	anonymous := map[string][]string{"img:1": {""}, "img:latest": {""}, "img" + digest: {""}}
	for name, tc := range map[string]struct {
		image   string
		policy  v1.PullPolicy
		service *fakeService
		present []string
		dir     bool

		reason  string
		message string
		events  []string
		pulls   []string
		id      string
	}{
		"img-1 the default tag": {
			image: "img", policy: v1.PullIfNotPresent, service: &fakeService{may: anonymous},
			id: "sha256:img:latest", pulls: []string{" img:latest"},
			events: []string{`Normal Pulling Pulling image "img"`, `Normal Pulled Successfully pulled image "img" in 0s (0s including waiting). Image size: 7 bytes.`},
		},
		"img-1 a digest needs no tag": {
			image: "img" + digest, policy: v1.PullIfNotPresent, present: []string{"img" + digest}, id: "sha256:img" + digest,
			events: []string{`Normal Pulled Container image "img` + digest + `" already present on machine`},
		},
		"img-1 no name of an image": {
			image: "Img", policy: v1.PullIfNotPresent, reason: "InvalidImageName",
			message: `Failed to apply default image tag "Img": couldn't parse image name "Img": invalid reference format: repository name (library/Img) must be lowercase`,
			events:  []string{`Warning InspectFailed Failed to apply default image tag "Img": couldn't parse image name "Img": invalid reference format: repository name (library/Img) must be lowercase`},
		},
		"img-1 but the runtime has it": {
			image: "Img", policy: v1.PullAlways, present: []string{"Img"}, id: "sha256:Img", dir: true,
		},
		"img-2 Always does not look first": {
			image: "img:1", policy: v1.PullAlways, service: &fakeService{may: anonymous}, present: []string{"img:1"},
			id: "sha256:img:1", pulls: []string{" img:1"},
			events: []string{`Normal Pulling Pulling image "img:1"`, `Normal Pulled Successfully pulled image "img:1" in 0s (0s including waiting). Image size: 7 bytes.`},
		},
		"img-2 looking fails": {
			image: "img:1", policy: v1.PullIfNotPresent, service: &fakeService{lookErr: status.Error(codes.Unknown, "disk is gone")},
			reason: "ImageInspectError", message: `Failed to inspect image "img:1": rpc error: code = Unknown desc = disk is gone`,
			events: []string{`Warning InspectFailed Failed to inspect image "img:1": rpc error: code = Unknown desc = disk is gone`},
		},
		"img-2 also with Never": {
			image: "img:1", policy: v1.PullNever, service: &fakeService{lookErr: errors.New("disk is gone")},
			reason: "ImageInspectError", message: `Failed to inspect image "img:1": disk is gone`,
			events: []string{`Warning InspectFailed Failed to inspect image "img:1": disk is gone`},
		},
		"img-3 Never and absent": {
			image: "img:1", policy: v1.PullNever, service: &fakeService{may: anonymous}, reason: "ErrImageNeverPull",
			message: `Container image "img:1" is not present with pull policy of Never`,
			events:  []string{`Warning ErrImageNeverPull Container image "img:1" is not present with pull policy of Never`},
		},
		"img-3 Never and present": {
			image: "img:1", policy: v1.PullNever, present: []string{"img:1"}, id: "sha256:img:1",
			events: []string{`Normal Pulled Container image "img:1" already present on machine`},
		},
		"img-4 present": {
			image: "img:1", present: []string{"img:1"}, id: "sha256:img:1",
			events: []string{`Normal Pulled Container image "img:1" already present on machine`},
		},
		"img-4 present, with records": {
			image: "img:1", present: []string{"img:1"}, id: "sha256:img:1", dir: true,
			events: []string{`Normal Pulled Container image "img:1" already present on machine and can be accessed by the pod`},
		},
		"img-8 not in the registry": {
			image: "img:1", policy: v1.PullIfNotPresent, reason: "ErrImagePull", message: "rpc error: code = NotFound desc = img:1: not found", pulls: []string{" img:1"},
			events: []string{`Normal Pulling Pulling image "img:1"`, `Warning Failed Failed to pull image "img:1": rpc error: code = NotFound desc = img:1: not found`},
		},
		"img-9 registry unavailable": {
			image: "img:1", service: &fakeService{fails: status.Error(codes.Unknown, "RegistryUnavailable: 503")}, pulls: []string{" img:1"},
			reason: "RegistryUnavailable", message: "image pull failed for img:1 because the registry is unavailable: 503",
			events: []string{`Normal Pulling Pulling image "img:1"`, `Warning Failed Failed to pull image "img:1": RegistryUnavailable: 503`},
		},
		"img-9 signature": {
			image: "img:1", service: &fakeService{fails: errors.New("SignatureValidationFailed")}, pulls: []string{" img:1"},
			reason: "SignatureValidationFailed", message: "image pull failed for img:1 because the signature validation failed",
			events: []string{`Normal Pulling Pulling image "img:1"`, `Warning Failed Failed to pull image "img:1": SignatureValidationFailed`},
		},
		"img-11 it took two seconds": {
			image: "img:1", service: &fakeService{may: anonymous, takes: 2 * time.Second}, id: "sha256:img:1", pulls: []string{" img:1"},
			events: []string{`Normal Pulling Pulling image "img:1"`, `Normal Pulled Successfully pulled image "img:1" in 2s (2s including waiting). Image size: 7 bytes.`},
		},
		"gone after its pull": {
			image: "img:1", service: &fakeService{may: anonymous, vanish: true}, pulls: []string{" img:1"}, dir: true,
			reason: "ImageInspectError", message: `Failed to inspect image "img:1" after its pull: image is not present`,
			events: []string{`Normal Pulling Pulling image "img:1"`, `Warning InspectFailed Failed to inspect image "img:1" after its pull: image is not present`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := ""
			if tc.dir {
				dir = t.TempDir()
			}
			synctest.Test(t, func(t *testing.T) {
				f := tc.service
				if f == nil {
					f = new(fakeService)
				}
				f.has(tc.present...)
				seen := new(events)
				pod := podOf("web")
				req := seen.of(pod, tc.image, tc.policy)
				req.RuntimeHandler = "kata"
				image, err := newManager(t, images.Config{Service: f, Dir: dir}).Ensure(t.Context(), req)
				assert.Equal(t, tc.reason, why(t, err))
				if tc.reason != "" {
					require.EqualError(t, err, tc.message)
				} else {
					assert.Equal(t, tc.id, image.ID)
					assert.EqualValues(t, 7, image.Size)
					require.NotNil(t, image.UID)
					assert.EqualValues(t, 5, *image.UID)
					assert.Equal(t, tc.id, image.Spec.Image)
					assert.Equal(t, tc.image, image.Spec.UserSpecifiedImage)
					assert.Equal(t, pod.Annotations, image.Spec.Annotations)
					assert.Equal(t, "kata", image.Spec.RuntimeHandler)
				}
				assert.Equal(t, tc.events, seen.take())
				assert.Equal(t, tc.pulls, f.pulled())
				for _, spec := range f.specs {
					assert.Equal(t, "kata", spec.RuntimeHandler)
					assert.Empty(t, spec.UserSpecifiedImage, "it belongs to CreateContainer")
					assert.Equal(t, pod.Annotations, spec.Annotations)
				}
			})
		})
	}
}

func TestCredentialsAreTriedInOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		creds   []images.Credential
		lookErr error
		pulls   []string
		message string
	}{
		"img-14 none: one anonymous try": {nil, nil, []string{" img:1"}, `img:1: "" is unauthorized`},
		"img-14 the second works":        {[]images.Credential{secret("a", "eve", "1"), secret("b", "ann", "2"), secret("c", "bob", "3")}, nil, []string{"eve img:1", "ann img:1"}, ""},
		"img-14 all fail": {[]images.Credential{secret("a", "eve", "1"), secret("b", "bob", "2")}, nil, []string{"eve img:1", "bob img:1"},
			`[img:1: "eve" is unauthorized, img:1: "bob" is unauthorized]`},
		"img-14 each text once":      {[]images.Credential{secret("a", "eve", "1"), secret("b", "eve", "2")}, nil, []string{"eve img:1", "eve img:1"}, `img:1: "eve" is unauthorized`},
		"credentials found are used": {[]images.Credential{secret("b", "ann", "2")}, errors.New("secret x: not found"), []string{"ann img:1"}, ""},
		"a failed lookup is reported": {nil, errors.New("secret x: not found"), []string{" img:1"},
			`img:1: "" is unauthorized (and credentials could not be looked up: secret x: not found)`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeService{may: map[string][]string{"img:1": {"ann"}}}
				creds := &credentials{err: tc.lookErr}
				creds.set("web", tc.creds...)
				_, err := newManager(t, images.Config{Service: f, Credentials: creds}).Ensure(t.Context(), images.Request{Pod: podOf("web"), Image: "img:1"})
				if tc.message == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, tc.message)
				}
				assert.Equal(t, tc.pulls, f.pulled())
				assert.Equal(t, 1, creds.looks)
			})
		})
	}
}

func TestACredentialPrintsWithoutItsContent(t *testing.T) {
	assert.Equal(t, "[credential of secret prod/a credential of service account prod/s credential of the node]",
		fmt.Sprintf("%+v", []images.Credential{secret("a", "ann", "1"), account("s", "tok"), nodeWide("bob")}))
}

// Every wait ends with its context (lq-8, img-17), and leaves no state behind.
func TestACanceledCallReturnsAtOnce(t *testing.T) {
	for name, prepare := range map[string]func(*fakeService, *credentials, *images.Config){
		"looking":            func(f *fakeService, _ *credentials, _ *images.Config) { f.block = make(chan struct{}) },
		"credentials":        func(_ *fakeService, c *credentials, _ *images.Config) { c.takes = time.Hour },
		"pulling":            func(f *fakeService, _ *credentials, _ *images.Config) { f.takes = time.Hour },
		"the limit of pulls": func(_ *fakeService, _ *credentials, cfg *images.Config) { cfg.QPS, cfg.Burst = 0.001, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, creds, seen := &fakeService{may: map[string][]string{"img:1": {""}, "img:2": {""}}}, new(credentials), new(events)
				cfg := images.Config{Service: f, Credentials: creds, MaxParallel: images.Unlimited}
				prepare(f, creds, &cfg)
				m := newManager(t, cfg)
				if cfg.QPS > 0 {
					_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("other"), Image: "img:2"})
					require.NoError(t, err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				begun := time.Now()
				_, err := m.Ensure(ctx, seen.of(podOf("web"), "img:1", v1.PullIfNotPresent))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, "ErrImagePull", why(t, err))
				assert.Equal(t, time.Second, time.Since(begun))
				for _, e := range seen.take() {
					assert.NotContains(t, e, "Warning")
				}
				// A canceled call does not count as a failure.
				synctest.Wait()
				f.block, f.takes, creds.takes = nil, 0, 0
				_, err = m.Ensure(t.Context(), images.Request{Pod: podOf("web"), Image: "img:1"})
				require.NoError(t, err)
			})
		})
	}
}

func TestBadRequestsAndConfigsAreRefused(t *testing.T) {
	f := &fakeService{}
	_, err := newManager(t, images.Config{Service: f}).Ensure(t.Context(), images.Request{Image: "img:1"})
	require.EqualError(t, err, "images: Request.Pod is nil")
	for want, cfg := range map[string]images.Config{
		"images: Config.Service is nil":                                          {},
		"images: Config.MaxParallel is -2: must be at least 0, or Unlimited":     {Service: f, MaxParallel: -2},
		"images: Config.Burst is -1":                                             {Service: f, Burst: -1},
		"images: Config.Backoff: must satisfy 0 < Initial <= Max and 0 < Forget": {Service: f, Backoff: images.Backoff{Initial: -1}},
		"images: Config.Verify is AlwaysVerify, which requires Config.Dir":       {Service: f, Verify: images.AlwaysVerify},
		`images: Config.Verify "Sometimes" is none of NeverVerify, NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages, AlwaysVerify`: {
			Service: f, Dir: "d", Verify: "Sometimes"},
		"images: Config.VerifyAllowlist is for NeverVerifyAllowlistedImages; Config.Verify is NeverVerifyPreloadedImages": {
			Service: f, Dir: "d", VerifyAllowlist: []string{"img"}},
		`images: Config.VerifyAllowlist: "img:1": an entry must not have a tag or digest`: {
			Service: f, Dir: "d", Verify: images.NeverVerifyAllowlistedImages, VerifyAllowlist: []string{"img:1"}},
		`images: Config.VerifyAllowlist: "reg.example/*/app": the only wildcard is /* at the end`: {
			Service: f, Dir: "d", Verify: images.NeverVerifyAllowlistedImages, VerifyAllowlist: []string{"reg.example/*/app"}},
		`images: Config.VerifyAllowlist: "*": the only wildcard is /* at the end`: {
			Service: f, Dir: "d", Verify: images.NeverVerifyAllowlistedImages, VerifyAllowlist: []string{"*"}},
		`images: Config.VerifyAllowlist: "": invalid reference format`: {
			Service: f, Dir: "d", Verify: images.NeverVerifyAllowlistedImages, VerifyAllowlist: []string{""}},
	} {
		_, err := images.New(cfg)
		assert.EqualError(t, err, want)
	}
}

func TestHooksReportPulls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{may: map[string][]string{"img:1": {""}, "img:2": {""}}, takes: time.Second}
		var mu sync.Mutex
		var reported []string
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, fmt.Sprintf(format, args...))
		}
		m := newManager(t, images.Config{Service: f, Hooks: images.Hooks{
			Waiting: func(i images.WaitInfo) { note("%s of %s waits", i.Image, i.Pod.Name) },
			Pulled: func(i images.PullInfo) {
				note("%s of %s: waited %v, took %v, %d bytes, err %v", i.Image, i.Pod.Name, i.Waited, i.Took, i.Size, i.Err)
			},
			Ensured: func(i images.EnsureInfo) {
				note("%s %s: present %v, pulled %v, err %v", i.Request.Pod.Name, i.Request.Image, i.Present, i.Pulled, i.Err)
			},
		}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "img:1"})
			assert.NoError(t, err)
		}()
		time.Sleep(time.Millisecond)
		_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("b"), Image: "img:2"})
		require.NoError(t, err)
		<-done
		_, err = m.Ensure(t.Context(), images.Request{Pod: podOf("c"), Image: "img:2"})
		require.NoError(t, err)
		assert.Equal(t, []string{
			"img:2 of b waits",
			"img:1 of a: waited 0s, took 1s, 7 bytes, err <nil>",
			"a img:1: present false, pulled true, err <nil>",
			"img:2 of b: waited 999ms, took 1s, 7 bytes, err <nil>",
			"b img:2: present false, pulled true, err <nil>",
			"c img:2: present true, pulled false, err <nil>",
		}, reported)
	})
}

// namesOnly is a service whose images are names.
type namesOnly struct{ *fakeService }

func (namesOnly) WithoutImages() {}

// An image without a tag has the policy Always, which would record a pull at each restart.
func TestARuntimeWithoutImagesPullsNone(t *testing.T) {
	service := &fakeService{may: map[string][]string{"host:latest": {""}}, local: map[string]*runtimeapi.Image{"host:latest": {Id: "host:latest", Size: 1}}}
	for want, s := range map[string]internalapi.ImageManagerService{"Pulling": service, "Pulled": namesOnly{service}} {
		m, err := images.New(images.Config{Service: s})
		require.NoError(t, err)
		var reasons []string
		_, err = m.Ensure(t.Context(), images.Request{
			Pod: podOf("a"), Image: "host", PullPolicy: v1.PullAlways,
			Event: func(_, reason, _ string) { reasons = append(reasons, reason) },
		})
		require.NoError(t, err)
		assert.Equal(t, want, reasons[0])
	}
}
