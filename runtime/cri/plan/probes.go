package plan

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A killReason is the reason to kill a running instance. The zero value means none.
type killReason struct {
	kill  string    // a Kill constant, equal to the Start constant of the replacement
	text  string    // the message, after the container's name
	probe *v1.Probe // the failed probe, if one failed
}

// killReasonOf returns the first reason to kill inst, a running instance of history h: its
// spec, its liveness probe, its startup probe, its resources (rules rt-48, rt-62).
func (c *computation) killReasonOf(ct *v1.Container, h *history, inst *runtime.ContainerStatus) killReason {
	switch {
	case isRedefined(inst, h.hash):
		return killReason{kill: KillDefinitionChanged, text: "definition changed"}
	case c.liveness(inst) == runtime.ProbeFailure:
		return killReason{kill: KillLivenessProbe, text: "failed liveness probe", probe: ct.LivenessProbe}
	case c.startup(inst) == runtime.ProbeFailure:
		return killReason{kill: KillStartupProbe, text: "failed startup probe", probe: ct.StartupProbe}
	case resizeRestarts(c.Pod, ct, inst.Resources):
		return killReason{kill: KillResize, text: "resize requires restart"}
	}
	return killReason{}
}

// replaced reports whether an instance that was killed for f is replaced. After a failed
// probe the restart policy decides; there is no exit code for restart rules (rule rt-37).
// After a change of the spec, including resources, it is always replaced; the API server
// rejects resizes that require a restart of pods with the policy Never.
func (f *killReason) replaced(pod *v1.Pod, ct *v1.Container) bool {
	switch f.kill {
	case KillLivenessProbe, KillStartupProbe:
		return podspec.RestartPolicy(pod, ct) != v1.RestartPolicyNever
	default:
		return true
	}
}

// grace returns the terminationGracePeriodSeconds of the failed probe; nil if it has none.
func (f *killReason) grace() *int64 {
	if f.probe == nil {
		return nil
	}
	return f.probe.TerminationGracePeriodSeconds
}

// isRedefined reports whether inst was created from a spec with another hash. An instance
// with an unknown hash is kept.
func isRedefined(inst *runtime.ContainerStatus, hash uint64) bool {
	return inst.Hash != 0 && inst.Hash != hash
}

// failed reports whether the liveness or startup probe of inst failed.
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

// startedUp reports whether a running instance has started: its startup probe has
// succeeded, or there is no startup probe or no prober.
func (c *computation) startedUp(ct *v1.Container, inst *runtime.ContainerStatus) bool {
	return ct.StartupProbe == nil || c.Probes == nil || c.startup(inst) == runtime.ProbeSuccess
}
