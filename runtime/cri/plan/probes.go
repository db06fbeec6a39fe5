package plan

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A flaw is what a running instance cannot stay for. The zero value is none.
type flaw struct {
	kill  string    // a Kill* reason, and the Start* reason of its successor
	words string    // to follow the container's name
	probe *v1.Probe // that found it
}

// flawOf says why inst, which runs, has to go. What comes first decides
// (rt-48, rt-62): its definition, its liveness, its startup, its resources. h is
// the history that inst is of.
func (c *computation) flawOf(ct *v1.Container, h *history, inst *runtime.ContainerStatus) flaw {
	switch {
	case redefined(inst, h.hash):
		return flaw{kill: KillDefinitionChanged, words: "definition changed"}
	case c.liveness(inst) == runtime.ProbeFailure:
		return flaw{kill: KillLivenessProbe, words: "failed liveness probe", probe: ct.LivenessProbe}
	case c.startup(inst) == runtime.ProbeFailure:
		return flaw{kill: KillStartupProbe, words: "failed startup probe", probe: ct.StartupProbe}
	case resizeRestarts(ct, inst.Resources):
		return flaw{kill: KillResize, words: "resize requires restart"}
	}
	return flaw{}
}

// replaced reports whether an instance stopped for f has a successor. A failed
// probe leaves that to the policy and asks no rules, for there is no exit code
// (rt-37). Other resources are a matter of the spec, as another image is: the
// successor comes whatever the policy. (The API server lets no pod of policy
// Never ask for a restart on resize.)
func (f *flaw) replaced(pod *v1.Pod, ct *v1.Container) bool {
	switch f.kill {
	case KillLivenessProbe, KillStartupProbe:
		return podspec.RestartPolicy(pod, ct) != v1.RestartPolicyNever
	default:
		return true
	}
}

// grace returns the grace period that the probe has of its own; nil if none.
func (f *flaw) grace() *int64 {
	if f.probe == nil {
		return nil
	}
	return f.probe.TerminationGracePeriodSeconds
}

// redefined reports whether inst was made from another definition than that of
// the hash. An unknown hash proves nothing: the instance stays.
func redefined(inst *runtime.ContainerStatus, hash uint64) bool {
	return inst.Hash != 0 && inst.Hash != hash
}

// failed reports whether a probe condemned inst.
func (c *computation) failed(inst *runtime.ContainerStatus) bool {
	return c.liveness(inst) == runtime.ProbeFailure || c.startup(inst) == runtime.ProbeFailure
}

func (c *computation) liveness(inst *runtime.ContainerStatus) runtime.ProbeResult {
	if c.Probes == nil {
		return runtime.ProbeUnknown
	}
	return c.Probes.Liveness[inst.ID]
}

func (c *computation) startup(inst *runtime.ContainerStatus) runtime.ProbeResult {
	if c.Probes == nil {
		return runtime.ProbeUnknown
	}
	return c.Probes.Startup[inst.ID]
}

// startedUp reports whether a running instance counts as started: its startup
// probe has succeeded, or there is none, or nobody probes (rt-60, rt-61).
func (c *computation) startedUp(ct *v1.Container, inst *runtime.ContainerStatus) bool {
	return ct.StartupProbe == nil || c.Probes == nil || c.startup(inst) == runtime.ProbeSuccess
}
