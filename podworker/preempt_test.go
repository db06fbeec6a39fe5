package podworker_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// crowded is a Handler over a node with room for a number of pods; a critical one
// preempts the others. The room of a pod is released by its Cleanup, which takes a
// while.
type crowded struct {
	room  int
	held  map[types.UID]bool
	trace func(string)
}

func (c *crowded) Sync(_ context.Context, w podworker.SyncRequest) (podworker.SyncResult, error) {
	if c.held[w.UID] {
		return podworker.SyncResult{Idle: true}, nil
	}
	if len(c.held) < c.room {
		c.held[w.UID] = true
		c.trace(string(w.UID) + " runs")
		return podworker.SyncResult{}, nil
	}
	return podworker.SyncResult{}, fmt.Errorf("no room yet: %w", &runtime.Rejection{Reason: "OutOfcpu", Preempt: slices.Collect(maps.Keys(c.held))})
}

func (c *crowded) Terminate(_ context.Context, w podworker.SyncRequest) error {
	time.Sleep(3 * time.Second)
	return nil
}

func (c *crowded) Cleanup(_ context.Context, w podworker.SyncRequest) error {
	time.Sleep(2 * time.Second)
	c.trace(string(w.UID) + " was cleaned up: " + w.Termination.Reason + ": " + w.Termination.Disruption)
	delete(c.held, w.UID)
	return nil
}

func TestACriticalPodRunsAfterPreemption(t *testing.T) { // adm-10, ev-62
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var trace, events, counted []string
		h := &crowded{room: 1, held: map[types.UID]bool{}, trace: func(what string) {
			trace = append(trace, time.Since(began).String()+" "+what)
		}}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}, Parallel: 1, Slow: -1, Record: func(e runtime.Event) {
			events = append(events, e.Object.Name+" "+e.Type+" "+e.Reason+": "+e.Message)
		}, Hooks: podworker.Hooks{Preempted: func(pod *v1.Pod, by types.UID, reason string) {
			counted = append(counted, pod.Name+" for "+string(by)+": "+reason)
		}}})
		require.NoError(t, err)
		stop := run(t, w)
		w.Update(newPod("web", 0), true)
		synctest.Wait()
		w.Update(newPod("critical", 0), true)
		time.Sleep(time.Second)
		e, _ := w.Snapshot("critical")
		assert.Equal(t, "wait for other pods to terminate", e.Step)
		assert.Equal(t, []types.UID{"web"}, e.BlockedBy)
		assert.False(t, e.Next.IsZero())
		time.Sleep(10 * time.Second)
		stop()
		assert.Equal(t, []string{"0s web runs", "5s web was cleaned up: Preempting: Pod was preempted by Kubelet to accommodate a critical pod.", "5s critical runs"}, trace, "no sooner and no later than there is room")
		assert.Equal(t, []string{"web Warning Preempting: Preempted in order to admit critical pod"}, events)
		assert.Equal(t, []string{"web for critical: OutOfcpu"}, counted)
	})
}

func TestPodsThatTerminateAlreadyAreOnlyWaitedFor(t *testing.T) { // adm-10, sl-19
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var trace, events []string
		h := &crowded{room: 1, held: map[types.UID]bool{}, trace: func(what string) {
			trace = append(trace, time.Since(began).String()+" "+what)
		}}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}, Record: func(e runtime.Event) { events = append(events, e.Reason) }})
		require.NoError(t, err)
		stop := run(t, w)
		w.Update(newPod("web", 0), true)
		synctest.Wait()
		w.Remove("web")
		w.Update(newPod("next", 0), true)
		time.Sleep(10 * time.Second)
		stop()
		assert.Equal(t, []string{"0s web runs", "5s web was cleaned up: : ", "5s next runs"}, trace)
		assert.Empty(t, events, "a pod that its source has deleted is not preempted")
	})
}

func TestAPodThatWaitsForVictimsThatDoNotGoIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &crowded{room: 0, held: map[types.UID]bool{"stuck": true, "critical": false}, trace: func(string) {}}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}, Jitter: func(_ types.UID, d time.Duration) time.Duration { return d }})
		require.NoError(t, err)
		stop := run(t, w)
		w.Update(newPod("critical", 0), true)
		synctest.Wait()
		e, _ := w.Snapshot("critical")
		assert.Empty(t, e.BlockedBy, "neither the pod itself nor an unknown one is killed")
		assert.Equal(t, podworker.Syncing, e.State)
		time.Sleep(15 * time.Second)
		e, _ = w.Snapshot("critical")
		assert.Equal(t, 2, e.Failures)
		stop()
	})
}
