package agent_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/volume"
)

// Wrappers that only forward the required methods, and the same with Unwrap.
type (
	hidingRuntime struct{ runtime.Runtime }
	hidingVolumes struct{ pipeline.Volumes }
	hidingCgroups struct{ pipeline.Cgroups }

	wrappedRuntime struct{ runtime.Runtime }
	wrappedVolumes struct{ pipeline.Volumes }
	wrappedCgroups struct{ pipeline.Cgroups }
)

func (w wrappedRuntime) Unwrap() any { return w.Runtime }
func (w wrappedVolumes) Unwrap() any { return w.Volumes }
func (w wrappedCgroups) Unwrap() any { return w.Cgroups }

func has[T any](part any) bool {
	_, ok := compose.As[T](part)
	return ok
}

// The volumes of removed pods were not removed if a wrapper embedded only the required interface.
func TestAWrapperThatHidesAnInterfaceIsAnError(t *testing.T) {
	complete := func() agent.Config {
		return agent.Config{
			Runtime: new(runtimetest.Runtime), Sink: new(status.MemorySink),
			Sources:    map[string]podsource.PodSource{podsource.APISource: new(podsource.Memory)},
			Subsystems: agent.Subsystems{Volumes: new(volume.Manager), Cgroups: new(cm.Manager)},
		}
	}
	for want, wrap := range map[string]func(cfg *agent.Config){
		"agent: Config.Runtime: agent_test.hidingRuntime hides Check (runtime.Checker) of *runtimetest.Runtime; add Unwrap": func(cfg *agent.Config) {
			cfg.Runtime = hidingRuntime{cfg.Runtime}
		},
		"agent: Config.Subsystems.Volumes: agent_test.hidingVolumes hides Retain (podworker.Retainer) of *volume.Manager; add Unwrap": func(cfg *agent.Config) {
			cfg.Subsystems.Volumes = hidingVolumes{cfg.Subsystems.Volumes}
		},
		"agent: Config.Subsystems.Cgroups: agent_test.hidingCgroups hides Retain (podworker.Retainer) of *cm.Manager; add Unwrap": func(cfg *agent.Config) {
			cfg.Subsystems.Cgroups = hidingCgroups{cfg.Subsystems.Cgroups}
		},
	} {
		cfg := complete()
		wrap(&cfg)
		_, err := agent.New(cfg)
		assert.EqualError(t, err, want)
	}

	cfg := complete()
	cfg.Runtime = wrappedRuntime{cfg.Runtime}
	cfg.Subsystems.Volumes = wrappedVolumes{cfg.Subsystems.Volumes}
	cfg.Subsystems.Cgroups = wrappedCgroups{cfg.Subsystems.Cgroups}
	_, err := agent.New(cfg)
	require.NoError(t, err)
	for name, kept := range map[string]bool{
		"Checker":          has[runtime.Checker](cfg.Runtime),
		"GarbageCollector": has[runtime.GarbageCollector](cfg.Runtime),
		"Watcher":          has[runtime.Watcher](cfg.Runtime),
		"Volumes Retainer": has[podworker.Retainer](cfg.Subsystems.Volumes),
		"VolumeHolder":     has[agent.VolumeHolder](cfg.Subsystems.Volumes),
		"BlockedReporter":  has[pipeline.BlockedReporter](cfg.Subsystems.Volumes),
		"Cgroups Retainer": has[podworker.Retainer](cfg.Subsystems.Cgroups),
	} {
		assert.True(t, kept, name)
	}
}
