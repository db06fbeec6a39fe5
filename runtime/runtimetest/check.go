package runtimetest

import (
	"slices"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Check is one promise of the contract that [TestRuntime] checks.
type Check struct {
	// Name of the check's subtest, and its key in Suite.Gaps.
	Name string

	// Promise is the requirement, in one or two sentences.
	Promise string

	// Contract is the place of the promise: a name of package runtime, and the
	// numbers of the kubelet's rules where the exact behavior is Kubernetes'.
	Contract string

	// Cause is the usual defect of a runtime that breaks the promise.
	Cause string

	// Needs lists the requirements of the check: optional interfaces of package
	// runtime ("Execer"), fields of the Suite ("Containers.Stubborn", "Queued"), and
	// "InitContainers" for Suite.NoInit being false. If one is missing, the check
	// is not applicable.
	Needs []string
}

// Checks returns all checks in the order in which they run. The caller owns the
// result. docs/conformance.md is generated from it.
func Checks() []Check {
	var out []Check
	for _, p := range promises() {
		out = append(out, Check{Name: p.name, Promise: p.text, Contract: p.contract, Cause: p.cause, Needs: slices.Clone(p.needs)})
	}
	return out
}

// A promise is one statement of the contract with its check. The fields are
// those of Check.
type promise struct {
	name, text, contract, cause string

	needs []string

	// alone: the check must not run concurrently with others, because it affects
	// the whole node or counts what all checks create.
	alone bool

	check func(*trial)
}

func promises() []promise {
	return slices.Concat(
		listerPromises, inspectPromises,
		syncPromises, queuePromises, initPromises, exitPromises, changePromises, backOffPromises, killPromises, invalidPromises,
		healthPromises, execPromises, streamPromises, logPromises, statsPromises, featurePromises, garbagePromises,
	)
}

// requirements report whether the suite or the runtime meets a requirement of a
// check.
var requirements = map[string]func(Suite, runtime.Runtime) bool{
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

// as returns the optional interface that the needs of t's promise contain.
func as[Interface any](t *trial) Interface {
	v, ok := compose.As[Interface](t.rt)
	if !ok {
		t.Fatalf("the runtime does not implement %T", (*Interface)(nil))
	}
	return v
}

// lacks returns the first requirement of the check that is not met, or "".
func (p promise) lacks(s Suite, rt runtime.Runtime) string {
	for _, need := range p.needs {
		if !requirements[need](s, rt) {
			return need
		}
	}
	return ""
}
