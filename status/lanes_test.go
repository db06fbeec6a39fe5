package status_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

func TestUrgentChangesGoFirstAndNoneStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		m, err := status.New(status.Config{Parallel: 1, Sink: sinkFunc(func(_ context.Context, pod *v1.Pod, _ v1.PodStatus) error {
			order = append(order, pod.Name)
			return nil
		})})
		require.NoError(t, err)
		for i := range 10 { // changes without urgency
			m.Report(named(podOf(v1.RestartPolicyAlways, "a"), fmt.Sprint("slow", i)), seen(), nil, runtime.Termination{})
		}
		for i := range 20 { // ready
			m.Report(named(podOf(v1.RestartPolicyAlways, "a"), fmt.Sprint("ready", i)), seen(runningC("a", 0)), nil, runtime.Termination{})
		}
		require.NoError(t, m.Flush(t.Context()))
		require.Len(t, order, 30)
		assert.Equal(t, []string{"ready0", "ready1", "ready2", "ready3", "slow0", "ready4"}, order[:6])
		assert.Equal(t, 4, slices.Index(order, "slow0"), "one in five is not urgent")
		assert.Equal(t, "slow4", order[24])
	})
}

func TestATerminalStatusIsDeliveredAmongAThousandChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reportedAfter time.Duration
		began := time.Now()
		job := named(podOf(v1.RestartPolicyNever, "a"), "job")
		m := started(t, status.Config{Parallel: 1, Sink: sinkFunc(func(_ context.Context, pod *v1.Pod, s v1.PodStatus) error {
			time.Sleep(10 * time.Millisecond)
			if pod == job && status.Terminal(s.Phase) {
				reportedAfter = time.Since(began)
			}
			return nil
		})})
		for i := range 1000 {
			m.Report(named(podOf(v1.RestartPolicyAlways, "a"), fmt.Sprint("web", i)), seen(), nil, runtime.Termination{})
		}
		m.Report(job, stopped(exitedC("a", 0, 0)), nil, runtime.Termination{})
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.NotZero(t, reportedAfter)
		assert.LessOrEqual(t, reportedAfter, 100*time.Millisecond)
	})
}
