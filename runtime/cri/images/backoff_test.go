package images_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/images"
)

// img-7, img-8: 10, 20, 40, 80, 160, 300 s, and 300 from then on.
func TestAPullThatFailsIsPutOffLongerEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, seen, pod := &fakeService{fails: errors.New("no such host")}, new(events), podOf("web")
		m := newManager(t, images.Config{Service: f})
		begun := time.Now()
		for range 2000 {
			_, err := m.Ensure(t.Context(), seen.of(pod, "img", v1.PullIfNotPresent))
			var failed *images.Error
			require.ErrorAs(t, err, &failed)
			require.True(t, failed.Until.After(time.Now()))
			if failed.Reason == "ErrImagePull" {
				require.Equal(t, "no such host", failed.Message)
				require.Equal(t, []string{`Normal Pulling Pulling image "img"`, `Warning Failed Failed to pull image "img": no such host`}, seen.take())
			} else {
				require.Equal(t, "ImagePullBackOff", failed.Reason)
				require.Equal(t, `Back-off pulling image "img": ErrImagePull: no such host`, failed.Message)
				require.Equal(t, []string{`Normal BackOff Back-off pulling image "img"`}, seen.take())
			}
			time.Sleep(time.Second)
		}
		var after []time.Duration
		for _, at := range f.at {
			after = append(after, at.Sub(begun)/time.Second)
		}
		assert.Equal(t, []time.Duration{0, 10, 30, 70, 150, 310, 610, 910, 1210, 1510, 1810}, after)
	})
}

func TestTheBackoffBeginsAgainWithOtherCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		creds := new(credentials)
		creds.set("web", secret("a", "eve", "1"))
		m := newManager(t, images.Config{Service: &fakeService{fails: errors.New("denied")}, Credentials: creds})
		fails := func() time.Duration {
			_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("web"), Image: "img:1"})
			var failed *images.Error
			require.ErrorAs(t, err, &failed)
			require.Equal(t, "ErrImagePull", failed.Reason)
			return time.Until(failed.Until)
		}
		for _, delay := range []time.Duration{10, 20, 40, 80} {
			delay *= time.Second
			require.Equal(t, delay, fails())
			time.Sleep(delay)
		}
		require.Equal(t, 160*time.Second, fails())
		creds.set("web", secret("a", "eve", "2")) // which may be mended step by step
		require.Equal(t, 10*time.Second, fails())
		time.Sleep(10 * time.Second)
		require.Equal(t, 20*time.Second, fails())
	})
}

func TestABackoffEnds(t *testing.T) {
	const image = "img:1"
	for name, tc := range map[string]struct {
		cfg  images.Config
		then func(*images.Manager, *credentials)
		pod  string
		want string // of the request after that
	}{
		"not by itself":              {then: func(*images.Manager, *credentials) {}, want: "ImagePullBackOff"},
		"img-7 it is per pod":        {pod: "other", want: "ErrImagePull"},
		"by image and pod":           {then: func(m *images.Manager, _ *credentials) { m.ResetBackoff("uid-web", image) }, want: "ErrImagePull"},
		"by pod":                     {then: func(m *images.Manager, _ *credentials) { m.ResetBackoff("uid-web", "") }, want: "ErrImagePull"},
		"by image":                   {then: func(m *images.Manager, _ *credentials) { m.ResetBackoff("", image) }, want: "ErrImagePull"},
		"not by another pod":         {then: func(m *images.Manager, _ *credentials) { m.ResetBackoff("uid-other", "") }, want: "ImagePullBackOff"},
		"not by another image":       {then: func(m *images.Manager, _ *credentials) { m.ResetBackoff("", "img:2") }, want: "ImagePullBackOff"},
		"when the pod is removed":    {then: func(m *images.Manager, _ *credentials) { m.Forget("uid-web") }, want: "ErrImagePull"},
		"lq-17 a new secret":         {then: func(_ *images.Manager, c *credentials) { c.set("web", secret("a", "eve", "2")) }, want: "ErrImagePull"},
		"lq-17 another secret":       {then: func(_ *images.Manager, c *credentials) { c.set("web", secret("b", "eve", "1")) }, want: "ErrImagePull"},
		"lq-17 another kind":         {then: func(_ *images.Manager, c *credentials) { c.set("web", account("a", "token-2")) }, want: "ErrImagePull"},
		"lq-17 lookup fails":         {then: func(_ *images.Manager, c *credentials) { c.set("web"); c.err = errors.New("no API server") }, want: "ImagePullBackOff"},
		"img-8 after the first 10 s": {then: func(*images.Manager, *credentials) { time.Sleep(10 * time.Second) }, want: "ErrImagePull"},
		"a configured delay":         {cfg: images.Config{Backoff: images.Backoff{Initial: time.Minute}}, then: func(*images.Manager, *credentials) { time.Sleep(10 * time.Second) }, want: "ImagePullBackOff"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				creds := new(credentials)
				creds.set("web", secret("a", "eve", "1"))
				tc.cfg.Service, tc.cfg.Credentials = &fakeService{}, creds
				m := newManager(t, tc.cfg)
				_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("web"), Image: image})
				require.Equal(t, "ErrImagePull", why(t, err))
				if tc.then != nil {
					tc.then(m, creds)
				}
				if tc.pod == "" {
					tc.pod = "web"
				}
				_, err = m.Ensure(t.Context(), images.Request{Pod: podOf(tc.pod), Image: image})
				require.Equal(t, tc.want, why(t, err))
			})
		})
	}
}

// Renewing a token does not reset the back-off (lq-17).
func TestARenewedTokenDoesNotEndTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		creds := new(credentials)
		m := newManager(t, images.Config{Service: &fakeService{}, Credentials: creds})
		for i, want := range []string{"ErrImagePull", "ImagePullBackOff"} {
			creds.set("web", account("a", "token-"+string(rune('1'+i))))
			_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("web"), Image: "img:1"})
			require.Equal(t, want, why(t, err))
		}
	})
}

// Ten minutes after the last failure the delays start from the beginning (img-15);
// failures of images that are no longer requested are dropped as well.
func TestOldFailuresAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{}
		m := newManager(t, images.Config{Service: f})
		until := func(pod string) time.Duration {
			_, err := m.Ensure(t.Context(), images.Request{Pod: podOf(pod), Image: "img:1"})
			var failed *images.Error
			require.ErrorAs(t, err, &failed)
			return time.Until(failed.Until)
		}
		assert.Equal(t, 10*time.Second, until("web"))
		time.Sleep(10 * time.Second)
		assert.Equal(t, 20*time.Second, until("web"))
		time.Sleep(600 * time.Second)
		assert.Equal(t, 40*time.Second, until("web"))
		time.Sleep(601 * time.Second)
		assert.Equal(t, 10*time.Second, until("web"))
		time.Sleep(601 * time.Second)
		assert.Equal(t, 10*time.Second, until("other"))
		assert.Equal(t, 1, m.Failures(), "only the other's")
	})
}

// Two containers of a pod that wait for one image share one failure.
func TestOneSharedFailureIsOneStepOfTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{takes: time.Second}
		m := newManager(t, images.Config{Service: f, MaxParallel: images.Unlimited})
		req := images.Request{Pod: podOf("web"), Image: "img:1"}
		for _, r := range m.EnsureAll(t.Context(), []images.Request{req, req, req}) {
			var failed *images.Error
			require.ErrorAs(t, r.Err, &failed)
			assert.Equal(t, "ErrImagePull", failed.Reason)
			assert.Equal(t, 10*time.Second, time.Until(failed.Until))
		}
		assert.Len(t, f.pulled(), 1)
	})
}
