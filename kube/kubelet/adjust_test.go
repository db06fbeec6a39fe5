package kubelet

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/test/adjusttest"
	"github.com/kubeparts/kubeparts/kube/kubelet/options"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/status"
)

func constructed(t *testing.T, adjust ...compose.Adjustment) {
	t.Helper()
	cfg := runnable(t, "")
	cfg.Adjust = adjust
	k, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, k.Close())
}

func TestALimitOfTheWorkersKeepsTheConnectionsOfTheKubelet(t *testing.T) {
	var workers podworker.Config
	var restore bool
	constructed(t,
		compose.Adjust(func(c *podworker.Config) { c.Parallel, c.Hooks = 50, podworker.Hooks{} }),
		compose.Adjust(func(c *status.Config) { restore = c.Restore != nil }),
		compose.Adjust(func(c *agent.Config) {
			c.Adjust = append(c.Adjust, compose.Adjust(func(c *podworker.Config) { workers = *c }))
		}))
	assert.Equal(t, 50, workers.Parallel)
	assert.Positive(t, workers.Resync)
	assert.True(t, restore)
}

func TestRetainersOfTheKubeletCannotBeReplaced(t *testing.T) {
	var called bool
	constructed(t, compose.Adjust(func(c *agent.Config) {
		called = true
		assert.Empty(t, c.Retainers)
		assert.Empty(t, c.Adjust)
	}))
	assert.True(t, called)
}

// A function for each subsystem and component changes one number. What the kubelet has set
// remains.
func TestAChangedLimitRemovesNoDependency(t *testing.T) {
	dependencies := func(adjust ...compose.Adjustment) map[string][]string {
		all := map[string][]string{}
		add := func(name string, cfg reflect.Value) { all[name] = adjusttest.Dependencies(cfg) }
		constructed(t, append(adjust, adjusttest.Functions(options.Adjustable(), add)...)...)
		return all
	}
	before := dependencies()
	after := dependencies(adjusttest.Functions(options.Adjustable(), adjusttest.ChangeLimit)...)
	assert.Equal(t, before, after)
	assert.Contains(t, before["status.Config"], "Restore")
	assert.Contains(t, before["agent.Config"], "Runtime")
	assert.GreaterOrEqual(t, len(before), 14, "%v", before)
}
