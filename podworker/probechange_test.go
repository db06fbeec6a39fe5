package podworker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// A slowKill takes a minute to stop a pod.
type slowKill struct{ *node }

func (n slowKill) KillPod(context.Context, runtime.KillRequest) error {
	<-time.After(time.Minute)
	return nil
}

// A teller sends the endings that are reported.
type teller struct {
	podworker.Reporter
	ends chan runtime.Termination
}

func (r teller) Report(_ *v1.Pod, _ *runtime.PodStatus, _ map[string]v1.ContainerStateWaiting, end runtime.Termination) v1.PodStatus {
	r.ends <- end
	return v1.PodStatus{}
}

// A slowSync takes a minute to sync a pod.
type slowSync struct{ *node }

func (n slowSync) SyncPod(context.Context, runtime.SyncRequest) (runtime.SyncResult, error) {
	<-time.After(time.Minute)
	return runtime.SyncResult{}, nil
}

func TestReadinessIsReportedDuringSyncPod(t *testing.T) { // prober-65
	synctest.Test(t, func(t *testing.T) {
		told := teller{ends: make(chan runtime.Termination, 10)}
		p, err := podworker.NewPipeline(podworker.PipelineConfig{Runtime: slowSync{new(node)}, Status: told})
		require.NoError(t, err)
		w := firstWork(newPod("web", 0))
		done := make(chan error, 1)
		go func() {
			_, err := p.Sync(t.Context(), w)
			done <- err
		}()
		synctest.Wait()
		require.Len(t, told.ends, 1, "the report of the sync itself")
		p.ProbeChanged("another")
		require.Len(t, told.ends, 1)
		p.ProbeChanged(w.UID)
		require.Len(t, told.ends, 2)

		require.NoError(t, <-done)
		p.ProbeChanged(w.UID)
		assert.Len(t, told.ends, 2, "the next sync reports it")
	})
}

func TestReadinessIsToldWhileAPodStops(t *testing.T) { // prober-18, prober-65
	synctest.Test(t, func(t *testing.T) {
		told := teller{ends: make(chan runtime.Termination, 10)}
		p, err := podworker.NewPipeline(podworker.PipelineConfig{Runtime: slowKill{&node{left: &runtime.PodStatus{}}}, Status: told})
		require.NoError(t, err)
		w := firstWork(newPod("web", 0))
		w.Termination = runtime.Termination{Failed: true, Reason: "Evicted"}
		p.ProbeChanged(w.UID)
		require.Empty(t, told.ends, "it runs: it is synced instead")

		done := make(chan error, 1)
		go func() { done <- p.Terminate(t.Context(), w) }()
		synctest.Wait()
		assert.Equal(t, w.Termination, <-told.ends)
		p.ProbeChanged("another")
		require.Empty(t, told.ends)
		p.ProbeChanged(w.UID)
		require.Len(t, told.ends, 1)
		assert.Equal(t, w.Termination, <-told.ends)

		require.NoError(t, <-done)
		assert.True(t, (<-told.ends).Terminal)
		p.ProbeChanged(w.UID)
		assert.Empty(t, told.ends, "what was seen before it stopped is not said after")
	})
}
