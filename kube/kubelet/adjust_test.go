package kubelet

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/internal/test/adjusttest"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/status"
)

func constructed(t *testing.T, adjust ...Adjust) {
	t.Helper()
	cfg := runnable(t, "")
	cfg.Adjust = adjust
	k, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, k.Close())
}

// inAgent adjusts the components of the agent.
func inAgent(a agent.Adjust) Adjust {
	return Adjust{Agent: func(c *agent.Config) error {
		c.Adjust = append(c.Adjust, a)
		return nil
	}}
}

func TestALimitOfTheWorkersKeepsTheConnectionsOfTheKubelet(t *testing.T) {
	var workers podworker.Config
	var restore bool
	constructed(t,
		inAgent(agent.Adjust{Workers: func(c *podworker.Config) { c.Parallel, c.Hooks = 50, podworker.Hooks{} }}),
		inAgent(agent.Adjust{
			Workers: func(c *podworker.Config) { workers = *c },
			Status:  func(c *status.Config) { restore = c.Restore != nil },
		}))
	assert.Equal(t, 50, workers.Parallel)
	assert.Positive(t, workers.Resync)
	assert.True(t, restore)
}

func TestRetainersOfTheKubeletCannotBeReplaced(t *testing.T) {
	var called bool
	constructed(t, Adjust{Agent: func(c *agent.Config) error {
		called = true
		assert.Empty(t, c.Retainers)
		assert.Empty(t, c.Adjust)
		return nil
	}})
	assert.True(t, called)
}

// A function for each subsystem and component changes one number. What the kubelet has set
// remains.
func TestAChangedLimitRemovesNoDependency(t *testing.T) {
	dependencies := func(adjust ...Adjust) map[string][]string {
		all := map[string][]string{}
		add := func(name string, cfg reflect.Value) { all[name] = adjusttest.Dependencies(cfg) }
		constructed(t, append(adjust, adjusttest.Functions[Adjust](add),
			inAgent(adjusttest.Functions[agent.Adjust](add)))...)
		return all
	}
	before := dependencies()
	after := dependencies(adjusttest.Functions[Adjust](adjusttest.ChangeLimit), inAgent(adjusttest.Functions[agent.Adjust](adjusttest.ChangeLimit)))
	assert.Equal(t, before, after)
	assert.Contains(t, before["Status"], "Restore")
	assert.Contains(t, before["Agent"], "Runtime")
	assert.GreaterOrEqual(t, len(before), 14, "%v", before)
}
