package agent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
)

func TestInsertedStepsAreRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		granted, released := make(chan struct{}), make(chan string, 1)
		n := start(t, agent.Config{Adjust: []compose.Adjustment{compose.Adjust(func(c *pipeline.Config) {
			c.Steps = append(c.Steps,
				pipeline.Step{Name: "acquire license", Before: pipeline.MountVolumes, Run: func(ctx context.Context, _ podworker.SyncRequest) error {
					select {
					case <-granted:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}},
				pipeline.Step{Name: "release license", Before: pipeline.FinishPod, Run: func(_ context.Context, req podworker.SyncRequest) error {
					released <- req.Pod.Name
					return nil
				}},
			)
		})}})
		begin := time.Now()
		n.source.Set(newPod("web"))
		time.Sleep(time.Minute)
		s, ok := n.Snapshot("uid-web")
		require.True(t, ok)
		assert.Equal(t, "acquire license", s.Step)
		assert.Equal(t, begin, s.StepSince)
		assert.Empty(t, n.runs(t))
		assert.Equal(t, v1.PodPending, n.phase("web"))

		close(granted)
		settle()
		assert.Equal(t, []string{"web"}, n.runs(t))
		assert.Empty(t, released)
		n.source.Set()
		time.Sleep(time.Minute)
		assert.Equal(t, "web", <-released)
	})
}
