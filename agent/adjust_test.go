package agent_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/test/adjusttest"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

func adjusted(t *testing.T, adjust ...compose.Adjustment) {
	t.Helper()
	_, err := agent.New(agent.Config{
		Runtime: new(runtimetest.Runtime), Sink: new(status.MemorySink), Sources: map[string]podsource.PodSource{"api": new(podsource.Memory)},
		Subsystems: agent.Subsystems{Probes: prober.Handlers{HTTPGet: prober.HTTPGet{}}}, Adjust: adjust,
	})
	require.NoError(t, err)
}

// A user changes one limit of a component that an assembly has configured.
func TestAdjustKeepsWhatEarlierFunctionsHaveSet(t *testing.T) {
	var got podworker.Config
	adjusted(t,
		compose.Adjust(func(c *podworker.Config) {
			c.Resync, c.Hooks.Synced = 60, func(podworker.SyncInfo) {}
		}),
		compose.Adjust(func(c *podworker.Config) {
			assert.Nil(t, c.Hooks.Synced, "it cannot be replaced")
			c.Parallel = 50
		}),
		compose.Adjust(func(c *podworker.Config) { got = *c }))
	assert.Equal(t, 50, got.Parallel)
	assert.EqualValues(t, 60, got.Resync)
}

func TestAChangedLimitRemovesNoDependency(t *testing.T) {
	dependencies := func(adjust ...compose.Adjustment) map[string][]string {
		all := map[string][]string{}
		adjusted(t, append(adjust, adjusttest.Functions(agent.Adjustable(), func(name string, cfg reflect.Value) {
			all[name] = adjusttest.Dependencies(cfg)
		})...)...)
		return all
	}
	before := dependencies()
	assert.Len(t, before, len(agent.Adjustable()))
	assert.Equal(t, before, dependencies(adjusttest.Functions(agent.Adjustable(), adjusttest.ChangeLimit)...))
}
