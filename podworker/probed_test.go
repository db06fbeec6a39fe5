package podworker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// A slowKill takes a minute to stop a pod.
type slowKill struct{ *node }

func (n slowKill) KillPod(context.Context, runtime.KillRequest) error {
	<-time.After(time.Minute)
	return n.ask("kill")
}

func TestReadinessIsToldWhileAPodStops(t *testing.T) { // prober-18, prober-65
	synctest.Test(t, func(t *testing.T) {
		n := &node{fail: map[string]error{}, left: &runtime.PodStatus{}}
		p, err := podworker.NewPipeline(podworker.PipelineConfig{Runtime: slowKill{n}, Status: n})
		require.NoError(t, err)
		w := firstWork(newPod("web", 0))
		w.Ending = runtime.Ending{Failed: true, Reason: "Evicted"}
		p.Probed(w.UID)
		assert.Empty(t, n.asked, "it runs: it is synced instead")

		done := make(chan error, 1)
		go func() { done <- p.Terminate(t.Context(), w) }()
		synctest.Wait()
		p.Probed("another")
		require.Equal(t, []string{"report"}, n.asked)
		p.Probed(w.UID)
		require.Equal(t, []string{"report", "report"}, n.asked)
		assert.Equal(t, n.ends[0], n.ends[1])

		require.NoError(t, <-done)
		n.asked = nil
		p.Probed(w.UID)
		assert.Empty(t, n.asked, "what was seen before it stopped is not said after")
	})
}
