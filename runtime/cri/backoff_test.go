package cri_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

func TestCrashesAreBackedOffFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		rt, seen := f.engine(t, cri.Config{})
		pod := podOf(container("web"))
		syncs(t, rt, pod)
		for i, delay := range []time.Duration{0, 10, 20, 40, 80, 160, 300, 300} { // rt-91
			time.Sleep(time.Second)
			f.exits("web", 1)
			seen.take()
			if delay *= time.Second; delay > 0 {
				res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
				require.ErrorContains(t, err, fmt.Sprintf("back-off %v restarting failed container=web pod=web_prod(u-1)", delay))
				require.Equal(t, "CrashLoopBackOff", res.Actions[0].Reason)
				require.Equal(t, time.Now().Add(delay), res.RetryAt)
				require.Equal(t, []string{
					"Warning BackOff spec.containers{web}: Back-off restarting failed container web in pod web_prod(u-1)",
				}, seen.take())
				time.Sleep(delay)
			}
			syncs(t, rt, pod)
			require.Equal(t, []string{"web"}, f.running(), "restart %d", i)
			require.EqualValues(t, i+1, f.newest("web").Config.Metadata.Attempt)
		}
	})
}

func TestPullsAreBackedOffFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.pull = func(context.Context, string) error { return errors.New("no such host") }
		rt, seen := f.engine(t, cri.Config{})
		pod := podOf(container("web"))
		for _, delay := range []time.Duration{10, 20, 40, 80, 160, 300, 300} { // img-8
			delay *= time.Second
			f.did()
			res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			require.ErrorContains(t, err, "ErrImagePull")
			require.Contains(t, f.did(), "PullImage img:1")
			// The image may become present before the back-off ends.
			require.Equal(t, time.Now().Add(min(delay, 10*time.Second)), res.RetryAt)
			seen.take()

			time.Sleep(delay - time.Second)
			res, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			require.ErrorContains(t, err, `with ImagePullBackOff: "Back-off pulling image \"img:1\": ErrImagePull: no such host"`)
			require.NotContains(t, f.did(), "PullImage img:1")
			require.Equal(t, time.Now().Add(time.Second), res.RetryAt)
			require.Equal(t, []string{ // img-7, img-10
				`Normal BackOff spec.containers{web}: Back-off pulling image "img:1"`,
				"Warning Failed spec.containers{web}: Error: ImagePullBackOff",
			}, seen.take())
			time.Sleep(time.Second)
		}
		f.pull = func(context.Context, string) error { time.Sleep(2 * time.Second); return nil }
		syncs(t, rt, pod)
		require.Contains(t, seen.take(), `Normal Pulled spec.containers{web}: Successfully pulled image "img:1" in 2s (2s including waiting). Image size: 1048576 bytes.`)
	})
}

func TestARecoverableFailureIsNotDelayedByABackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		rt, _ := f.engine(t, cri.Config{})
		crash, absent := container("crash"), container("absent")
		absent.Image, absent.ImagePullPolicy = "img:2", v1.PullNever
		pod := podOf(crash, absent)
		for range 4 {
			time.Sleep(time.Minute) // past any back-off so far
			_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			require.ErrorContains(t, err, "ErrImageNeverPull")
			f.exits("crash", 1)
		}
		res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.ErrorContains(t, err, "back-off")
		require.ErrorContains(t, err, "ErrImageNeverPull")
		require.Equal(t, time.Now().Add(10*time.Second), res.RetryAt)

		f.has("img:2")
		res, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.ErrorContains(t, err, "back-off")
		require.Equal(t, []string{"absent"}, f.running())
		require.Greater(t, time.Until(res.RetryAt), 10*time.Second)
	})
}
