package cri_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// An announcer is an engine whose runtime's events the test delivers, in any order.
type announcer struct {
	*cri.Runtime
	fake    *fakeCRI
	pending []*runtimeapi.ContainerEventResponse
	deliver chan *runtimeapi.ContainerEventResponse
}

// newAnnouncer returns an announcer that watches until the test ends, in a bubble.
func newAnnouncer(t *testing.T) *announcer {
	f := newFake()
	a := &announcer{fake: f, deliver: make(chan *runtimeapi.ContainerEventResponse)}
	s := eventful{f, func(ctx context.Context, events chan<- *runtimeapi.ContainerEventResponse) error {
		for {
			select {
			case e := <-a.deliver:
				events <- e
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}}
	a.Runtime, _ = f.engine(t, cri.Config{Runtime: s})
	ctx, cancel := context.WithCancel(t.Context())
	sent, ended := make(chan *runtimeapi.ContainerEventResponse), make(chan error, 2)
	go func() { ended <- f.mem.GetContainerEvents(ctx, sent, nil) }()
	go func() { ended <- a.Watch(ctx, func(types.UID) {}) }()
	go func() {
		for {
			select {
			case e := <-sent:
				f.mu.Lock()
				a.pending = append(a.pending, e)
				f.mu.Unlock()
			case <-ctx.Done():
				return
			}
		}
	}()
	synctest.Wait()
	t.Cleanup(func() {
		cancel()
		<-ended
		<-ended
	})
	return a
}

// next delivers an event: the pending one with the index.
func (a *announcer) next(i int) *runtimeapi.ContainerEventResponse {
	synctest.Wait()
	e := a.pending[i]
	a.pending = slices.Delete(a.pending, i, i+1)
	a.deliver <- e
	synctest.Wait()
	return e
}

func (a *announcer) all() {
	for synctest.Wait(); len(a.pending) > 0; synctest.Wait() {
		a.next(0)
	}
}

// announced returns the status of the pod, and the number of calls that it took.
func (a *announcer) announced(t *testing.T) (*runtime.PodStatus, int) {
	t.Helper()
	before := len(a.fake.reads)
	st, err := a.PodStatus(runtime.AllowAnnounced(t.Context(), true), "u-1")
	require.NoError(t, err)
	return st, len(a.fake.reads) - before
}

// exact requires that the status of the last event equals an inspection, and needs no call.
func (a *announcer) exact(t *testing.T, what string) {
	t.Helper()
	a.all()
	st, calls := a.announced(t)
	assert.Zero(t, calls, what)
	inspected, err := a.PodStatus(t.Context(), "u-1")
	require.NoError(t, err)
	st.ObservedAt, inspected.ObservedAt = time.Time{}, time.Time{}
	assert.Equal(t, inspected, st, what)
}

// inBubble runs a test of an announcer.
func inBubble(t *testing.T, test func(t *testing.T, a *announcer)) {
	synctest.Test(t, func(t *testing.T) { test(t, newAnnouncer(t)) })
}

func TestTheLastEventIsAsGoodAsAnInspection(t *testing.T) {
	inBubble(t, func(t *testing.T, a *announcer) {
		pod := podOf(container("web"), container("log"))
		syncs(t, a.Runtime, pod)
		a.exact(t, "started")
		require.NoError(t, a.fake.mem.Exit("u-1", "web", 3))
		a.exact(t, "exited")
		syncs(t, a.Runtime, pod) // in back-off or started again, with the exited instance beside it
		a.all()
		_, err := a.PodStatus(t.Context(), "u-1")
		require.NoError(t, err)
		require.NoError(t, a.KillPod(t.Context(), runtime.KillRequest{UID: "u-1", Pod: pod}))
		a.exact(t, "stopped")
		_, calls := a.announced(t)
		assert.NotZero(t, calls, "each event is used once")
	})
}

func TestAnEventDoesNotReplaceAnInspection(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, a *announcer, pod *v1.Pod){
		"without an event": func(*testing.T, *announcer, *v1.Pod) {},
		"if it is from before the last call": func(_ *testing.T, a *announcer, _ *v1.Pod) {
			for range len(a.pending) - 1 {
				a.next(0)
			}
		},
		"if a call followed it": func(t *testing.T, a *announcer, pod *v1.Pod) {
			st, err := a.PodStatus(t.Context(), "u-1")
			require.NoError(t, err)
			a.all()
			require.NoError(t, a.KillPod(t.Context(), runtime.KillRequest{UID: "u-1", Pod: pod, Status: st}))
		},
		"if it arrives after a newer one": func(t *testing.T, a *announcer, _ *v1.Pod) {
			started := len(a.pending) - 1
			require.NoError(t, a.fake.mem.Exit("u-1", "web", 0))
			synctest.Wait()
			a.next(len(a.pending) - 1) // the exit
			_, calls := a.announced(t)
			assert.Zero(t, calls)
			a.next(started)
		},
		"if a container is missing": func(_ *testing.T, a *announcer, _ *v1.Pod) {
			a.pending[len(a.pending)-1].ContainersStatuses = nil
			a.all()
		},
		"if a container is unknown": func(_ *testing.T, a *announcer, _ *v1.Pod) {
			e := a.pending[len(a.pending)-1]
			other := proto.CloneOf(e.ContainersStatuses[0])
			other.Id = "other"
			e.ContainersStatuses = append(e.ContainersStatuses, other)
			a.all()
		},
		"if the sandbox is missing": func(_ *testing.T, a *announcer, _ *v1.Pod) {
			e := a.pending[len(a.pending)-1]
			e.PodSandboxStatus = nil
			a.all()
		},
		"if the state of a container is unknown": func(_ *testing.T, a *announcer, _ *v1.Pod) {
			a.pending[len(a.pending)-1].ContainersStatuses[0].State = runtimeapi.ContainerState_CONTAINER_UNKNOWN
			a.all()
		},
		"if a field is missing": func(_ *testing.T, a *announcer, _ *v1.Pod) {
			a.pending[len(a.pending)-1].ContainersStatuses[0].Metadata = nil
			a.all()
		},
		"after a call that failed": func(t *testing.T, a *announcer, _ *v1.Pod) {
			a.all()
			a.fake.before = failing(1, "StopPodSandbox", assert.AnError)
			require.Error(t, a.KillPod(t.Context(), runtime.KillRequest{UID: "u-1"}))
			a.all()
		},
		"after an update of resources": func(t *testing.T, a *announcer, _ *v1.Pod) {
			a.all()
			require.NoError(t, a.UpdateResources(t.Context(), a.fake.mem.Containers("u-1")[0].ID, v1.ResourceRequirements{}))
		},
		"after a removal by others": func(t *testing.T, a *announcer, _ *v1.Pod) {
			a.all()
			require.NoError(t, a.fake.mem.RemoveContainer(t.Context(), a.fake.mem.Containers("u-1")[0].ID))
			a.all()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, a *announcer) {
				pod := podOf(container("web"))
				syncs(t, a.Runtime, pod)
				synctest.Wait()
				prepare(t, a, pod)
				st, calls := a.announced(t)
				assert.NotZero(t, calls)
				inspected, err := a.PodStatus(t.Context(), "u-1")
				require.NoError(t, err)
				st.ObservedAt, inspected.ObservedAt = time.Time{}, time.Time{}
				assert.Equal(t, inspected, st)
			})
		})
	}
}

// The network of a sandbox is that of its inspection: an event may be from before it had one.
func TestAnEventFromBeforeTheNetworkHasTheAddressesOfTheInspection(t *testing.T) {
	inBubble(t, func(t *testing.T, a *announcer) {
		syncs(t, a.Runtime, podOf(container("web")))
		synctest.Wait()
		a.pending[len(a.pending)-1].PodSandboxStatus.Network = nil
		a.exact(t, "started")
	})
}

func TestAStreamThatWasOpenedAgainHasMissedEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, a *announcer) {
		syncs(t, a.Runtime, podOf(container("web")))
		a.all()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.Watch(ctx, func(types.UID) {}) }()
		synctest.Wait()
		cancel()
		<-done
		_, calls := a.announced(t)
		assert.NotZero(t, calls)
	})
}

// Events arrive in any order or not at all. However they do, a status is never older than an earlier one, and has
// the result of each call.
func TestAnnouncedStatusesNeverGoBack(t *testing.T) {
	saved := 0
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, a *announcer) { saved += playAnnouncements(t, a, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
	assert.Greater(t, saved, 20, "statuses without a call")
}

func playAnnouncements(t *testing.T, a *announcer, r *rand.Rand) (saved int) {
	pod := podOf(container("web"), container("log"))
	pod.Spec.RestartPolicy = v1.RestartPolicyNever
	exited := map[string]bool{} // containers that a status, an event or a call has shown as exited
	stopped := false
	for range 40 {
		synctest.Wait()
		switch n := r.IntN(10); {
		case n == 0 && !stopped:
			syncs(t, a.Runtime, pod)
		case n == 1:
			_ = a.fake.mem.Exit("u-1", []string{"web", "log"}[r.IntN(2)], 0) // unless it does not run
		case n == 2 && r.IntN(4) == 0:
			require.NoError(t, a.KillPod(t.Context(), runtime.KillRequest{UID: "u-1", Pod: pod}))
			stopped = true
			for _, c := range a.fake.mem.Containers("u-1") {
				exited[c.ID] = c.State != fakecri.Created
			}
		case n == 3 && stopped:
			require.NoError(t, a.CollectGarbage(t.Context(), runtime.GCPolicy{Keep: func(types.UID) bool { return false }}))
		case n == 4 && len(a.pending) > 0: // lost
			i := r.IntN(len(a.pending))
			a.pending = slices.Delete(a.pending, i, i+1)
		case n <= 7 && len(a.pending) > 0:
			for _, c := range a.next(min(r.IntN(3), len(a.pending)-1)).ContainersStatuses {
				exited[c.Id] = exited[c.Id] || c.State == runtimeapi.ContainerState_CONTAINER_EXITED
			}
		default:
			st, calls := a.announced(t)
			if calls == 0 {
				saved++
			}
			truth := a.fake.mem.Containers("u-1")
			require.Len(t, st.Containers, len(truth))
			require.Len(t, st.Sandboxes, len(a.fake.mem.Sandboxes("u-1")))
			for _, c := range truth {
				i := slices.IndexFunc(st.Containers, func(s runtime.ContainerStatus) bool { return s.ID == "fake://"+c.ID })
				require.GreaterOrEqual(t, i, 0, "each container that exists is in the status")
				switch is := st.Containers[i].State; {
				case exited[c.ID]:
					require.Equal(t, runtime.ContainerExited, is, "an exit that is known is in the status")
				case is == runtime.ContainerExited:
					exited[c.ID] = true
				case c.State == fakecri.Running:
					require.Equal(t, runtime.ContainerRunning, is, "a start is in the status")
				}
			}
		}
	}
	return saved
}
