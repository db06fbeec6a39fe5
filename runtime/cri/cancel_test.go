package cri_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// hangs blocks until ctx is done, as a call of a CRI runtime does.
func hangs(ctx context.Context) error {
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

// A slowpoke is a CRI runtime some of whose calls block until they are canceled.
type slowpoke struct {
	*fakeCRI
	slow string // the operation
}

func (s *slowpoke) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	id, err := s.fakeCRI.RunPodSandbox(ctx, config, handler)
	if s.slow == "RunPodSandbox" {
		return "", hangs(ctx)
	}
	return id, err
}

func (s *slowpoke) CreateContainer(ctx context.Context, id string, config *runtimeapi.ContainerConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	id, err := s.fakeCRI.CreateContainer(ctx, id, config, sandbox)
	if s.slow == "CreateContainer" {
		return "", hangs(ctx)
	}
	return id, err
}

func (s *slowpoke) StartContainer(ctx context.Context, id string) error {
	err := s.fakeCRI.StartContainer(ctx, id)
	if s.slow == "StartContainer" {
		return hangs(ctx)
	}
	return err
}

// A deletion cancels every call that a sync of the pod waits for, and the pod is
// stopped (lq-8). A call that creates or starts something may take five more seconds,
// so that its result is not lost.
func TestADeletionCancelsASync(t *testing.T) {
	const unlimited = 1e12 // seconds
	for _, tc := range []struct {
		name   string
		slow   string
		change func(*fakeCRI, *v1.Pod)
		within time.Duration // from the deletion to the end of the sync
	}{
		{"a pull", "", func(f *fakeCRI, _ *v1.Pod) {
			must(f.RemoveImage(context.Background(), &runtimeapi.ImageSpec{Image: "img:1"}))
			f.pull = func(ctx context.Context, _ string) error {
				ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
				defer cancel()
				return hangs(ctx)
			}
		}, 0},
		{"a postStart that hangs", "", func(f *fakeCRI, p *v1.Pod) {
			p.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: execHook("hang")}
			f.exec = func(ctx context.Context, _ string, _ []string) error { return hangs(ctx) }
		}, 0},
		{"a postStart that sleeps", "", func(_ *fakeCRI, p *v1.Pod) {
			p.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: unlimited}}}
		}, 0},
		{"a sandbox", "RunPodSandbox", nil, 5 * time.Second},
		{"a container that is created", "CreateContainer", nil, 5 * time.Second},
		{"a container that is started", "StartContainer", nil, 5 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.has("img:1")
				slow := &slowpoke{fakeCRI: f, slow: tc.slow}
				dir := t.TempDir()
				rt, err := cri.New(cri.Config{Name: "fake", Runtime: slow, Images: f, Dirs: cri.Dirs{Root: dir, PodLogs: dir}})
				require.NoError(t, err)
				pod := podOf(container("web"), container("log"))
				if tc.change != nil {
					tc.change(f, pod)
				}
				ctx, deleted := context.WithCancel(t.Context())
				done := make(chan error)
				go func() {
					_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
					done <- err
				}()
				select {
				case err := <-done:
					t.Fatalf("the sync waits for nothing: %v", err)
				case <-time.After(time.Minute):
				}
				begun := time.Now()
				deleted()
				require.ErrorIs(t, <-done, context.Canceled)
				assert.LessOrEqual(t, time.Since(begun), tc.within)

				require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
				assert.LessOrEqual(t, time.Since(begun), tc.within+time.Second)
				assert.Empty(t, f.running())
				for _, s := range f.sandboxes() {
					assert.Equal(t, fakecri.NotReady, s.State)
				}
			})
		})
	}
}

// The same at the level of an agent: the worker of a deleted pod cancels the sync that
// is in progress.
func TestAWorkerDoesNotWaitForThePullOfADeletedPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.pull = func(ctx context.Context, _ string) error { return hangs(ctx) }
		rt, _ := f.engine(t, cri.Config{})
		pipeline, err := pipeline.New(pipeline.Config{Runtime: rt})
		require.NoError(t, err)
		workers, err := podworker.New(podworker.Config{Handler: pipeline, StatusCache: looks{rt}})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- workers.Run(ctx) }()

		pod := podOf(container("web"))
		workers.Update(pod, true)
		time.Sleep(5 * time.Minute)
		require.Contains(t, f.did(), "PullImage img:1")
		require.Len(t, f.sandboxes(), 1)

		pod = pod.DeepCopy()
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
		workers.Update(pod, false)
		time.Sleep(time.Second)
		assert.Equal(t, fakecri.NotReady, f.sandboxes()[0].State)
		state, ok := workers.Table().State(pod.UID)
		assert.True(t, ok)
		assert.Equal(t, podworker.Finished, state)
		stop()
		require.NoError(t, <-ran)
	})
}

// looks is the status cache of an agent without a pleg.
type looks struct{ rt *cri.Runtime }

func (looks) Healthy() error { return nil }

func (looks) Pods() []*runtime.Pod { return nil }

func (l looks) Get(uid types.UID) (*runtime.PodStatus, error) {
	return l.rt.PodStatus(context.Background(), uid)
}

func (l looks) GetNewerThan(ctx context.Context, uid types.UID, _ time.Time) (*runtime.PodStatus, error) {
	return l.rt.PodStatus(ctx, uid)
}

// A canceled stop returns at once from every step: a hook, the wait for a turn, and
// the grace period of a container.
func TestACanceledStopReturnsAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fakeCRI, *v1.Pod)
		dies   []string // late
	}{
		"a preStop that hangs": {change: func(f *fakeCRI, p *v1.Pod) {
			p.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: execHook("hang")}
			f.exec = func(ctx context.Context, _ string, _ []string) error { return hangs(ctx) }
		}},
		"a preStop that sleeps": {change: func(_ *fakeCRI, p *v1.Pod) {
			p.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 290}}}
		}},
		"a turn":             {dies: []string{"web"}},
		"a container's ways": {dies: []string{"web", "proxy"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				rt, _ := f.engine(t, cri.Config{})
				pod := podOf(container("web"))
				pod.Spec.InitContainers = []v1.Container{sidecar("proxy")}
				pod.Spec.TerminationGracePeriodSeconds = new(int64(300))
				if tc.change != nil {
					tc.change(f, pod)
				}
				up(t, f, rt, pod)
				for _, name := range tc.dies {
					f.dies(name, time.Hour)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
				defer cancel()
				begun := time.Now()
				require.ErrorIs(t, rt.KillPod(ctx, runtime.KillRequest{UID: pod.UID, Pod: pod}), context.DeadlineExceeded)
				assert.Equal(t, 7*time.Second, time.Since(begun))

				// A second stop with a shorter grace period is bounded by that.
				begun = time.Now()
				require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod, GracePeriodSeconds: new(int64(3))}))
				assert.LessOrEqual(t, time.Since(begun), 5*time.Second)
				assert.Empty(t, f.running())
			})
		})
	}
}

// Whatever the durations of hooks, turns and containers are, a termination takes at
// most two seconds longer than the grace period, and not longer than its steps.
func TestATerminationHasOneDeadline(t *testing.T) {
	rnd := seedrun.Rand(t)
	for round := range 60 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				rt, _ := f.engine(t, cri.Config{})
				grace := int64(rnd.IntN(60))
				pod := podOf()
				pod.Spec.TerminationGracePeriodSeconds = &grace
				hooks, dies := map[string]time.Duration{}, map[string]time.Duration{}
				add := func(c v1.Container) v1.Container {
					dies[c.Name] = time.Duration(rnd.IntN(50_000)) * time.Millisecond
					switch rnd.IntN(3) {
					case 0:
						hooks[c.Name] = time.Duration(rnd.IntN(50_000)) * time.Millisecond
						c.Lifecycle = &v1.Lifecycle{PreStop: execHook("hook")}
					case 1:
						n := int64(rnd.IntN(50))
						hooks[c.Name] = time.Duration(n) * time.Second
						c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: n}}}
					}
					return c
				}
				for i := range 1 + rnd.IntN(3) {
					pod.Spec.Containers = append(pod.Spec.Containers, add(container(fmt.Sprint("main", i))))
				}
				for i := range rnd.IntN(4) {
					pod.Spec.InitContainers = append(pod.Spec.InitContainers, add(sidecar(fmt.Sprint("side", i))))
				}
				f.exec = func(ctx context.Context, name string, _ []string) error {
					select {
					case <-time.After(hooks[name]):
						return nil
					case <-ctx.Done():
						return status.FromContextError(ctx.Err()).Err()
					}
				}
				up(t, f, rt, pod)
				for name, after := range dies {
					f.dies(name, after)
				}
				require.Len(t, f.running(), len(pod.Spec.Containers)+len(pod.Spec.InitContainers))
				begun := time.Now()
				require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
				took := time.Since(begun)
				assert.Empty(t, f.running())
				assert.LessOrEqual(t, took, time.Duration(grace+2)*time.Second)
				// whole is the duration if no hook and no stop is cut short:
				// sidecars sequentially, hooks concurrently.
				var whole time.Duration
				for _, c := range pod.Spec.Containers {
					whole = max(whole, hooks[c.Name]+dies[c.Name])
				}
				for _, c := range slices.Backward(pod.Spec.InitContainers) {
					whole = max(whole, hooks[c.Name]) + dies[c.Name]
				}
				assert.LessOrEqual(t, took, whole)
			})
		})
	}
}
