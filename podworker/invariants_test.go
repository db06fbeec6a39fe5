package podworker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// A town is a runtime and a Handler over it that are slow and fail now and then, and
// check the invariants. It outlives agents.
type town struct {
	mu     sync.Mutex
	rng    *rand.Rand
	runs   map[types.UID]*runtime.Pod
	broken []string
}

func (w *town) laps(ctx context.Context) error {
	w.mu.Lock()
	d, fails := time.Duration(w.rng.IntN(4000))*time.Millisecond, w.rng.IntN(8) == 0
	w.mu.Unlock()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return ctx.Err()
	}
	if fails {
		return errors.New("a bad day")
	}
	return nil
}

func (w *town) Sync(ctx context.Context, work podworker.SyncRequest) (podworker.SyncResult, error) {
	pod := work.Pod
	w.mu.Lock()
	for uid, other := range w.runs {
		if strings.HasPrefix(string(uid), "static-") && strings.HasPrefix(string(work.UID), "static-") && uid != work.UID && other.Name == pod.Name {
			w.broken = append(w.broken, fmt.Sprintf("inv-3: %s is synced while %s of its name runs", work.UID, uid))
		}
	}
	w.runs[work.UID] = &runtime.Pod{
		UID: work.UID, Name: pod.Name, Namespace: pod.Namespace, Source: pod.Annotations["kubernetes.io/config.source"],
		Sandboxes: []runtime.Sandbox{{State: runtime.SandboxReady}},
	}
	w.mu.Unlock()
	return podworker.SyncResult{}, w.laps(ctx)
}

func (w *town) Terminate(ctx context.Context, work podworker.SyncRequest) error {
	if err := w.laps(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, work.UID)
	return nil
}

func (w *town) Cleanup(ctx context.Context, work podworker.SyncRequest) error {
	if w.running(work.UID) {
		w.note("%s is cleaned up, and runs", work.UID)
	}
	return w.laps(ctx)
}

func (w *town) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

func (w *town) running(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[uid] != nil
}

func (*town) Healthy() error { return nil }

func (w *town) Pods() (pods []*runtime.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pod := range w.runs {
		pods = append(pods, pod)
	}
	return pods
}

func (w *town) Get(uid types.UID) (*runtime.PodStatus, error) {
	status := &runtime.PodStatus{UID: uid, ObservedAt: time.Now()}
	if w.running(uid) {
		status.Sandboxes = []runtime.SandboxStatus{{State: runtime.SandboxReady}}
	}
	return status, nil
}

func (w *town) GetNewerThan(_ context.Context, uid types.UID, _ time.Time) (*runtime.PodStatus, error) {
	return w.Get(uid)
}

func TestInvariantsHoldForAgentsThatComeAndGo(t *testing.T) { // inv-3, inv-5, inv-14, inv-17, inv-18
	seed := seedrun.Seed(t)
	for i := range uint64(3) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { ruleATown(t, seed+i) })
		})
	}
}

func ruleATown(t *testing.T, seed uint64) {
	w := &town{rng: rand.New(rand.NewPCG(seed, 0)), runs: map[types.UID]*runtime.Pod{}}
	script := rand.New(rand.NewPCG(seed, 1))
	wanted := map[string]*v1.Pod{} // by name: as podsource.Merge has it
	killed := map[types.UID]bool{}
	generation := 0
	var waiters sync.WaitGroup
	for range 6 { // agents
		workers, err := podworker.New(podworker.Config{Handler: w, StatusCache: w, Parallel: 5, Slow: 2 * time.Second})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: workers, Sources: []string{"file"}})
		var pods []*v1.Pod
		for _, pod := range wanted {
			pods = append(pods, pod)
		}
		clear(killed) // a restarted agent has no record of earlier kills
		loop.AddPods(pods)
		loop.SourceSynced("file")
		for range 200 {
			name := fmt.Sprint("pod-", script.IntN(8))
			pod := wanted[name]
			switch {
			case pod == nil || script.IntN(6) == 0:
				generation++
				next := newPod(fmt.Sprintf("%s-%d", name, script.IntN(3)), generation)
				next.Name = name
				if script.IntN(2) == 0 {
					next.UID = "static-" + next.UID
					next.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
				}
				if pod != nil {
					loop.RemovePods([]*v1.Pod{pod})
				}
				wanted[name] = next
				delete(killed, next.UID)
				loop.AddPods([]*v1.Pod{next})
			case script.IntN(8) == 0:
				delete(wanted, name)
				loop.RemovePods([]*v1.Pod{pod})
			case script.IntN(10) == 0:
				killed[pod.UID] = true
				outcome := workers.Kill(pod.UID, podworker.KillOptions{GracePeriodSeconds: new(int64(script.IntN(30)))})
				waiters.Go(func() {
					o := <-outcome
					if o != podworker.Abandoned && w.running(pod.UID) && !w.wantedAgain(workers.Table(), pod) {
						w.note("inv-5: the kill of %s is answered %q, and it runs", pod.UID, o)
					}
				})
			default:
				loop.PodChanged(pod.UID)
			}
			time.Sleep(time.Duration(script.IntN(1500)) * time.Millisecond)
		}
		if script.IntN(2) == 0 {
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			for name, pod := range wanted {
				if state, _ := workers.Table().State(pod.UID); !killed[pod.UID] {
					assert.Equal(t, podworker.Syncing, state, "%s (%s)", name, pod.UID)
					assert.True(t, w.running(pod.UID), "%s (%s)", name, pod.UID)
				} else if !w.wantedAgain(workers.Table(), pod) {
					assert.Equal(t, podworker.Finished, state, "%s (%s)", name, pod.UID)
				}
			}
			assert.LessOrEqual(t, len(w.Pods()), len(wanted), "only desired pods run")
		}
		stop()
	}
	waiters.Wait()
	assert.Empty(t, w.broken[:min(len(w.broken), 5)], "%d in all", len(w.broken))

	// An agent without desired pods.
	workers, err := podworker.New(podworker.Config{Handler: w, StatusCache: w})
	require.NoError(t, err)
	loop, stop := runLoop(t, podworker.LoopConfig{Workers: workers, Sources: []string{"file"}})
	loop.SourceSynced("file")
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	assert.Empty(t, w.Pods(), "inv-18")
	assert.Empty(t, workers.Table().States())
	stop()
}

// wantedAgain reports whether the pod was added again after it was killed, so that it
// may run.
func (w *town) wantedAgain(table *podworker.Table, pod *v1.Pod) bool {
	now, _ := table.Pod(pod.UID)
	return now != nil && now.Generation != pod.Generation
}
