package runtimetest

import (
	"slices"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Check is one requirement of the contract, which [TestRuntime] checks.
type Check struct {
	// Name of the check's subtest, and its key in Suite.Gaps.
	Name string

	// Requirement is its text, in one or two sentences.
	Requirement string

	// Contract is the place of the requirement: a name of package runtime, and the
	// numbers of the kubelet's rules where the exact behavior is Kubernetes'.
	Contract string

	// Cause is the usual defect of a runtime that breaks the requirement.
	Cause string

	// Needs lists the conditions of the check: optional interfaces of package
	// runtime ("Execer"), fields of the Suite ("Containers.Stubborn", "Queued"), and
	// "InitContainers" for Suite.NoInit being false. If one is missing, the check
	// is not applicable.
	Needs []string
}

// Checks returns all checks in the order in which they run. The caller owns the
// result. docs/conformance.md is generated from it.
func Checks() []Check {
	var out []Check
	for _, p := range requirements() {
		out = append(out, Check{Name: p.name, Requirement: p.text, Contract: p.contract, Cause: p.cause, Needs: slices.Clone(p.needs)})
	}
	return out
}

// A requirement is one statement of the contract with its check. The fields are
// those of Check.
type requirement struct {
	name, text, contract, cause string

	needs []string

	// alone: the check must not run concurrently with others, because it affects
	// the whole node or counts what all checks create.
	alone bool

	check func(*checkT)
}

func requirements() []requirement {
	return slices.Concat(
		listerRequirements, inspectRequirements,
		syncRequirements, queueRequirements, initRequirements, exitRequirements, changeRequirements, backOffRequirements, killRequirements, invalidRequirements,
		healthRequirements, execRequirements, streamRequirements, logRequirements, statsRequirements, featureRequirements, garbageRequirements,
	)
}

// conditions report whether the suite or the runtime meets a condition of a
// check.
var conditions = map[string]func(Suite, runtime.Runtime) bool{
	"Checker":              has[runtime.Checker],
	"Watcher":              has[runtime.Watcher],
	"Execer":               has[runtime.Execer],
	"StreamExecer":         has[runtime.StreamExecer],
	"Attacher":             has[runtime.Attacher],
	"PortForwarder":        has[runtime.PortForwarder],
	"StreamServer":         has[runtime.StreamServer],
	"LogReader":            has[runtime.LogReader],
	"LogRotator":           has[runtime.LogRotator],
	"StatsProvider":        has[runtime.StatsProvider],
	"ImageFSReporter":      has[runtime.ImageFSReporter],
	"FeatureReporter":      has[runtime.FeatureReporter],
	"CgroupDriverReporter": has[runtime.CgroupDriverReporter],
	"Checkpointer":         has[runtime.Checkpointer],
	"PodCheckpointer":      has[runtime.PodCheckpointer],
	"ResourceUpdater":      has[runtime.ResourceUpdater],
	"GarbageCollector":     has[runtime.GarbageCollector],

	"Queued":                func(s Suite, _ runtime.Runtime) bool { return s.Queued },
	"InitContainers":        func(s Suite, _ runtime.Runtime) bool { return !s.NoInit },
	"Containers.Stubborn":   func(s Suite, _ runtime.Runtime) bool { return s.Containers.Stubborn.Image != "" },
	"Commands.Print":        func(s Suite, _ runtime.Runtime) bool { return s.Commands.Print != nil },
	"Commands.PrintErr":     func(s Suite, _ runtime.Runtime) bool { return s.Commands.PrintErr != nil },
	"Commands.Block":        func(s Suite, _ runtime.Runtime) bool { return len(s.Commands.Block) > 0 },
	"Commands.Echo":         func(s Suite, _ runtime.Runtime) bool { return len(s.Commands.Echo) > 0 },
	"Containers.Prints":     func(s Suite, _ runtime.Runtime) bool { return s.Containers.Prints != nil },
	"Containers.Repeats":    func(s Suite, _ runtime.Runtime) bool { return s.Containers.Repeats.Image != "" },
	"Containers.Listens":    func(s Suite, _ runtime.Runtime) bool { return s.Containers.Listens != nil },
	"Containers.OtherImage": func(s Suite, _ runtime.Runtime) bool { return s.Containers.OtherImage != "" },
	"Containers.Message":    func(s Suite, _ runtime.Runtime) bool { return s.Containers.Message != nil },
	"Commands.Size":         func(s Suite, _ runtime.Runtime) bool { return len(s.Commands.Size) > 0 },
	"Backend.Calls":         func(s Suite, _ runtime.Runtime) bool { return s.Backend.Calls != nil },
	"Backend.Reopen":        func(s Suite, _ runtime.Runtime) bool { return s.Backend.Reopen != nil },

	"Backend.LoseSandbox": func(s Suite, _ runtime.Runtime) bool { return s.Backend.LoseSandbox != nil },
}

func has[Interface any](_ Suite, rt runtime.Runtime) bool {
	_, ok := compose.As[Interface](rt)
	return ok
}

// as returns the optional interface that the needs of t's requirement contain.
func as[Interface any](t *checkT) Interface {
	v, ok := compose.As[Interface](t.rt)
	if !ok {
		t.Fatalf("the runtime does not implement %T", (*Interface)(nil))
	}
	return v
}

// lacks returns the first condition of the check that is not met, or "".
func (p requirement) lacks(s Suite, rt runtime.Runtime) string {
	for _, need := range p.needs {
		if !conditions[need](s, rt) {
			return need
		}
	}
	return ""
}
