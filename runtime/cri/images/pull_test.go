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
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/images"
)

// registry returns a service with the public images img:1 … img:n.
func registry(n int) *fakeService {
	f := &fakeService{may: map[string][]string{}}
	for i := range n {
		f.may[fmt.Sprintf("img:%d", i+1)] = []string{""}
	}
	return f
}

func TestPullsTakeTurns(t *testing.T) {
	for name, tc := range map[string]struct {
		parallel int
		most     int
		takes    time.Duration
	}{
		"img-13 one at a time":  {0, 1, 6 * time.Second},
		"img-13 1 is the same":  {1, 1, 6 * time.Second},
		"img-13 two at a time":  {2, 2, 3 * time.Second},
		"img-13 without bounds": {images.Unlimited, 6, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := registry(6)
				f.takes = time.Second
				m := newManager(t, images.Config{Service: f, MaxParallel: tc.parallel})
				begun := time.Now()
				var all sync.WaitGroup
				for i := range 6 {
					all.Go(func() {
						_, err := m.Ensure(t.Context(), images.Request{Pod: podOf(fmt.Sprint(i)), Image: fmt.Sprintf("img:%d", i+1)})
						assert.NoError(t, err)
					})
				}
				all.Wait()
				assert.Equal(t, tc.takes, time.Since(begun))
				_, most := f.under()
				assert.Equal(t, tc.most, most)
			})
		})
	}
}

// The event of a pull includes the waiting time (img-11).
func TestTheEventContainsTheWaitingTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, seen := registry(2), new(events)
		f.takes = 2 * time.Second
		m := newManager(t, images.Config{Service: f})
		var first sync.WaitGroup
		first.Go(func() {
			_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "img:1"})
			assert.NoError(t, err)
		})
		time.Sleep(500 * time.Millisecond)
		_, err := m.Ensure(t.Context(), seen.of(podOf("b"), "img:2", v1.PullIfNotPresent))
		require.NoError(t, err)
		first.Wait()
		assert.Contains(t, seen.take(), `Normal Pulled Successfully pulled image "img:2" in 2s (3.5s including waiting). Image size: 7 bytes.`)
	})
}

// Concurrent requests of several pods share a pull if they use the same credentials
// and runtime handler.
func TestPodsShareAPull(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second []images.Credential
		handler       string
		policy        v1.PullPolicy
		pulls         int
	}{
		"anonymous":               {pulls: 1},
		"the same credentials":    {first: []images.Credential{secret("a", "ann", "1")}, second: []images.Credential{secret("a", "ann", "1")}, pulls: 1},
		"in two secrets":          {first: []images.Credential{secret("a", "ann", "1")}, second: []images.Credential{secret("b", "ann", "1")}, pulls: 1},
		"Always as well":          {policy: v1.PullAlways, pulls: 1},
		"other credentials":       {first: []images.Credential{secret("a", "ann", "1")}, second: []images.Credential{secret("b", "bob", "2")}, pulls: 2},
		"more of them":            {first: []images.Credential{secret("a", "ann", "1")}, second: []images.Credential{secret("a", "ann", "1"), secret("b", "bob", "2")}, pulls: 2},
		"another runtime handler": {handler: "kata", pulls: 2},
		"one of them has none":    {first: []images.Credential{secret("a", "ann", "1")}, pulls: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeService{may: map[string][]string{"img:1": {"", "ann", "bob"}}, takes: 2 * time.Second}
				creds, seen := new(credentials), new(events)
				creds.set("a", tc.first...)
				creds.set("b", tc.second...)
				m := newManager(t, images.Config{Service: f, Credentials: creds, MaxParallel: images.Unlimited})
				var first sync.WaitGroup
				first.Go(func() {
					_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "img:1", PullPolicy: tc.policy})
					assert.NoError(t, err)
				})
				time.Sleep(time.Second)
				req := seen.of(podOf("b"), "img:1", tc.policy)
				req.RuntimeHandler = tc.handler
				begun := time.Now()
				_, err := m.Ensure(t.Context(), req)
				require.NoError(t, err)
				first.Wait()
				assert.Len(t, f.pulled(), tc.pulls)
				want := 2 * time.Second
				if tc.pulls == 1 {
					want = time.Second
				}
				assert.Equal(t, want, time.Since(begun))
				assert.Equal(t, []string{`Normal Pulling Pulling image "img:1"`,
					`Normal Pulled Successfully pulled image "img:1" in 2s (2s including waiting). Image size: 7 bytes.`}, seen.take())
			})
		})
	}
}

func TestASharedPullEndsWithItsLastCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := registry(1)
		f.takes = time.Hour
		m := newManager(t, images.Config{Service: f})
		ask := func(name string, after time.Duration) (ended *time.Time) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			ended = new(time.Time)
			go func() {
				defer cancel()
				_, err := m.Ensure(ctx, images.Request{Pod: podOf(name), Image: "img:1"})
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				*ended = time.Now()
			}()
			return ended
		}
		begun := time.Now()
		a, b := ask("a", time.Second), ask("b", 3*time.Second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, time.Second, a.Sub(begun), "the first leaves at once")
		now, _ := f.under()
		assert.Equal(t, 1, now, "the other still waits")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, 3*time.Second, b.Sub(begun))
		now, _ = f.under()
		assert.Equal(t, 0, now, "the last caller has left")
		assert.Len(t, f.pulled(), 1)

		// The slot is free again.
		f.takes = time.Second
		_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("c"), Image: "img:1"})
		require.NoError(t, err)
	})
}

// A pull that the runtime does not cancel keeps its slot, but blocks no caller.
func TestAPullThatHangsBlocksNoCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := &deaf{fakeService: registry(2), until: make(chan struct{})}
		m := newManager(t, images.Config{Service: stuck})
		for _, image := range []string{"img:1", "img:1", "img:2"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			begun := time.Now()
			_, err := m.Ensure(ctx, images.Request{Pod: podOf("a"), Image: image})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, time.Second, time.Since(begun))
			cancel()
		}
		close(stuck.until)
		_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "img:2"})
		require.NoError(t, err)
	})
}

// deaf is a service whose pulls ignore their context.
type deaf struct {
	*fakeService
	until chan struct{}
}

func (d *deaf) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	<-d.until
	return d.fakeService.PullImage(ctx, spec, auth, sandbox)
}

// lq-16: a pull over the limit waits; it does not fail.
func TestPullsOverTheLimitWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := registry(6)
		m := newManager(t, images.Config{Service: f, QPS: 0.5, Burst: 3, MaxParallel: images.Unlimited})
		begun := time.Now()
		var reqs []images.Request
		for i := range 6 {
			reqs = append(reqs, images.Request{Pod: podOf(fmt.Sprint(i)), Image: fmt.Sprintf("img:%d", i+1)})
		}
		for _, r := range m.EnsureAll(t.Context(), reqs) {
			require.NoError(t, r.Err)
		}
		var after []time.Duration
		for _, at := range f.at {
			after = append(after, at.Sub(begun)/time.Second)
		}
		assert.Equal(t, []time.Duration{0, 0, 0, 2, 4, 6}, after)
		time.Sleep(5 * time.Second) // pays for two
		for range 3 {
			_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "img:1", PullPolicy: v1.PullAlways})
			require.NoError(t, err)
		}
		assert.Equal(t, 12*time.Second, time.Since(begun), "the third waits for the rest of its two seconds")
	})
}

func TestTheDefaultLimitIsTheKubelets(t *testing.T) {
	for name, tc := range map[string]struct {
		qps   float64
		takes time.Duration
	}{"5 a second after 10": {0, time.Second}, "none": {-1, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := registry(1)
				m := newManager(t, images.Config{Service: f, QPS: tc.qps})
				begun := time.Now()
				for range 15 {
					_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "img:1", PullPolicy: v1.PullAlways})
					require.NoError(t, err)
				}
				assert.Equal(t, tc.takes, time.Since(begun))
			})
		})
	}
}

// img-12, on demand.
func TestTheKubeletsLimitRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, pod := registry(1), podOf("a")
		m := newManager(t, images.Config{Service: f, QPS: 1, Burst: 1, RefuseOverQPS: true})
		req := images.Request{Pod: pod, Image: "img:1", PullPolicy: v1.PullAlways}
		_, err := m.Ensure(t.Context(), req)
		require.NoError(t, err)
		_, err = m.Ensure(t.Context(), req)
		require.EqualError(t, err, "pull QPS exceeded")
		_, err = m.Ensure(t.Context(), req)
		require.EqualError(t, err, `Back-off pulling image "img:1": ErrImagePull: pull QPS exceeded`)
	})
}

// lq-15: all images of a pod at once, each with its own error.
func TestAllImagesOfAPodArePulledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := registry(2)
		f.takes = time.Second
		f.has("img:3")
		m := newManager(t, images.Config{Service: f, MaxParallel: images.Unlimited})
		begun, pod := time.Now(), podOf("a")
		results := m.EnsureAll(t.Context(), []images.Request{
			{Pod: pod, Image: "img:1"}, {Pod: pod, Image: "absent:1"}, {Pod: pod, Image: "img:2"},
			{Pod: pod, Image: "img:3"}, {Pod: pod, Image: "img:4", PullPolicy: v1.PullNever}, {Pod: pod, Image: "img:1"},
		})
		assert.Equal(t, time.Second, time.Since(begun))
		var got []string
		for _, r := range results {
			got = append(got, r.Image.ID+why(t, r.Err))
		}
		assert.Equal(t, []string{"sha256:img:1", "ErrImagePull", "sha256:img:2", "sha256:img:3", "ErrImageNeverPull", "sha256:img:1"}, got)
		assert.Len(t, f.pulled(), 3)

		// Later requests find the images present.
		_, err := m.Ensure(t.Context(), images.Request{Pod: pod, Image: "img:2"})
		require.NoError(t, err)
		_, err = m.Ensure(t.Context(), images.Request{Pod: pod, Image: "absent:1"})
		assert.Equal(t, "ImagePullBackOff", why(t, err))
	})
}

func TestWherePullsTakeTurnsTheFirstImageIsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := registry(3)
		m := newManager(t, images.Config{Service: f})
		pod := podOf("a")
		m.EnsureAll(t.Context(), []images.Request{{Pod: pod, Image: "img:2"}, {Pod: pod, Image: "img:3"}, {Pod: pod, Image: "img:1"}})
		assert.Equal(t, []string{" img:2", " img:3", " img:1"}, f.pulled())
	})
}

func TestAllPullsOfAPodAreCanceledTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := registry(3)
		f.takes = time.Hour
		m := newManager(t, images.Config{Service: f, MaxParallel: 2})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun, pod := time.Now(), podOf("a")
		for _, r := range m.EnsureAll(ctx, []images.Request{{Pod: pod, Image: "img:1"}, {Pod: pod, Image: "img:2"}, {Pod: pod, Image: "img:3"}}) {
			require.ErrorIs(t, r.Err, context.DeadlineExceeded)
		}
		assert.Equal(t, time.Second, time.Since(begun))
	})
}

// img-16
func TestImagesThatAreVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := registry(1)
		m := newManager(t, images.Config{Service: f})
		pod := podOf("a")
		assert.Nil(t, m.EnsureVolumes(t.Context(), images.Request{Pod: pod}))
		assert.Nil(t, m.EnsureVolumes(t.Context(), images.Request{}))
		volume := func(name, image string, policy v1.PullPolicy) v1.Volume {
			return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: image, PullPolicy: policy}}}
		}
		pod.Spec.Volumes = []v1.Volume{
			{Name: "empty"}, volume("data", "img:1", v1.PullIfNotPresent), volume("local", "img:2", v1.PullNever),
			volume("absent", "img:3", v1.PullAlways), volume("nothing", "", ""),
		}
		seen := new(events)
		results := m.EnsureVolumes(t.Context(), seen.of(pod, "", ""))
		require.Len(t, results, 4)
		require.NoError(t, results["data"].Err)
		assert.Equal(t, "sha256:img:1", results["data"].Image.Spec.Image)
		assert.Equal(t, "ErrImageNeverPull", why(t, results["local"].Err))
		assert.Equal(t, "ErrImagePull", why(t, results["absent"].Err))
		assert.Equal(t, "InvalidImageName", why(t, results["nothing"].Err))
		assert.Len(t, seen.take(), 6)

		results = m.EnsureVolumes(t.Context(), images.Request{Pod: pod})
		require.NoError(t, results["data"].Err)
		assert.Equal(t, "ImagePullBackOff", why(t, results["absent"].Err))
	})
}

// After many concurrent requests, no goroutine and no token is leaked.
func TestAStormOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := registry(3)
		f.takes = 70 * time.Millisecond
		m := newManager(t, images.Config{Service: f, MaxParallel: 2, QPS: 100, Dir: t.TempDir()})
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i*7%500)*time.Millisecond)
				defer cancel()
				_, err := m.Ensure(ctx, images.Request{Pod: podOf(fmt.Sprint(i)), Image: fmt.Sprintf("img:%d", i%4+1), PullPolicy: v1.PullAlways})
				var failed *images.Error
				if err != nil && !errors.Is(err, context.DeadlineExceeded) && assert.ErrorAs(t, err, &failed) {
					assert.Equal(t, "rpc error: code = NotFound desc = img:4: not found", failed.Message)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		now, most := f.under()
		assert.Equal(t, 0, now)
		assert.LessOrEqual(t, most, 2)
		_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("last"), Image: "img:1", PullPolicy: v1.PullAlways})
		require.NoError(t, err)
	})
}
