package runtimetest

import (
	"slices"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Check is one promise of the contract that [TestRuntime] holds a runtime to.
type Check struct {
	// Name of the check's subtest, and its key in Suite.Gaps.
	Name string

	// Promise says in a sentence or two what is promised.
	Promise string

	// Contract says where: a name of package runtime, and the numbers of the
	// kubelet's rules where its behaviour is what is meant.
	Contract string

	// Cause is what is usually wrong with a runtime that breaks the promise.
	Cause string

	// Needs lists what the check cannot do without: powers of the runtime by
	// their names in package runtime ("Execer"), fields of the Suite
	// ("Suite.Stubborn"), "InitContainers" (no Suite.NoInit). Without one of
	// them the promise is not applicable.
	Needs []string
}

// Checks returns all checks in the order in which they are run. The caller owns
// the result. docs/conformance.md is made from it.
func Checks() []Check {
	var out []Check
	for _, p := range promises() {
		out = append(out, Check{Name: p.name, Promise: p.says, Contract: p.where, Cause: p.cause, Needs: slices.Clone(p.needs)})
	}
	return out
}

// A promise is one sentence of the contract, and how to find out whether a
// runtime keeps it. The fields are those of Check.
type promise struct {
	name, says, where, cause string

	needs []string

	// alone: no other check may be under way, because this one touches what is
	// not its own (the garbage of a node) or counts what all of them make.
	alone bool

	check func(*trial)
}

func promises() []promise {
	return slices.Concat(
		listerPromises, lookPromises,
		syncPromises, initPromises, exitPromises, changePromises, backOffPromises, killPromises, hostilePromises,
		healthPromises, execPromises, streamPromises, logPromises, statsPromises, featurePromises, garbagePromises,
	)
}

// requirements tell whether a runtime, or a suite, has what a check needs.
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

	"InitContainers": func(s Suite, _ runtime.Runtime) bool { return !s.NoInit },
	"Suite.Stubborn": func(s Suite, _ runtime.Runtime) bool { return s.Stubborn.Image != "" },
	"Suite.Print":    func(s Suite, _ runtime.Runtime) bool { return s.Print != nil },
	"Suite.PrintErr": func(s Suite, _ runtime.Runtime) bool { return s.PrintErr != nil },
	"Suite.Block":    func(s Suite, _ runtime.Runtime) bool { return len(s.Block) > 0 },
	"Suite.Echo":     func(s Suite, _ runtime.Runtime) bool { return len(s.Echo) > 0 },
	"Suite.Says":     func(s Suite, _ runtime.Runtime) bool { return s.Says != nil },
	"Suite.Repeats":  func(s Suite, _ runtime.Runtime) bool { return s.Repeats.Image != "" },
	"Suite.Greets":   func(s Suite, _ runtime.Runtime) bool { return s.Greets != nil },
	"Suite.Other":    func(s Suite, _ runtime.Runtime) bool { return s.Other != "" },
	"Suite.Message":  func(s Suite, _ runtime.Runtime) bool { return s.Message != nil },
	"Suite.Size":     func(s Suite, _ runtime.Runtime) bool { return len(s.Size) > 0 },
	"Suite.Calls":    func(s Suite, _ runtime.Runtime) bool { return s.Calls != nil },
	"Suite.Reopen":   func(s Suite, _ runtime.Runtime) bool { return s.Reopen != nil },

	"Suite.LoseSandbox": func(s Suite, _ runtime.Runtime) bool { return s.LoseSandbox != nil },
}

func has[T any](_ Suite, rt runtime.Runtime) bool {
	_, ok := runtime.As[T](rt)
	return ok
}

// as returns the optional interface that the needs of t's promise contain.
func as[T any](t *trial) T {
	v, ok := runtime.As[T](t.rt)
	if !ok {
		t.Fatalf("the runtime does not implement %T", (*T)(nil))
	}
	return v
}

// lacks returns the first thing that the check needs and that is not there, or "".
func (p promise) lacks(s Suite, rt runtime.Runtime) string {
	for _, need := range p.needs {
		if !requirements[need](s, rt) {
			return need
		}
	}
	return ""
}
