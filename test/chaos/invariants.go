package chaos

import (
	"slices"

	"github.com/kubeparts/kubeparts/sim"
)

// An invariant must hold in every run.
type invariant struct {
	name        string
	description string
}

// The names of the invariants.
const (
	oneInstance           = "one-live-instance"
	oneSandbox            = "one-ready-sandbox"
	restartCountIncreases = "restart-count-increases"
	reportedRestartCount  = "reported-restart-count"
	terminalPhaseFinal    = "terminal-phase-final"
	runningNotPending     = "running-not-pending"
	reportedInstanceNewer = "reported-instance-never-older"
	terminalNeverRestarts = "terminal-never-restarts"
	terminalMeansStopped  = "terminal-means-stopped"
	notReady              = "terminal-not-ready"
	deletedAfterCleanup   = "deleted-after-cleanup"
	exitCodesCorrect      = "exit-codes-correct"
	undisturbed           = "undisturbed"
	gracePeriodGiven      = "grace-period-given"
	logsReadable          = "logs-readable"
	agentKeepsRunning     = "agent-keeps-running"
	converges             = "converges"
	nothingLeft           = "nothing-left"
)

// simInvariants are the invariants of package sim that are checked on entries of these kinds, which are made of
// observations.
var simInvariants = map[sim.EntryKind][]string{
	sim.Created:       {restartCountIncreases},
	sim.Started:       {oneInstance},
	sim.SandboxReady:  {oneSandbox},
	sim.StatusUpdated: {reportedRestartCount, terminalPhaseFinal, reportedInstanceNewer, notReady, exitCodesCorrect},
}

func ofSim(name string) bool {
	for _, names := range simInvariants {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// ownInvariants are those of the processes and files of the machine, and of the effects of faults. oneInstance is
// also checked on processes.
var ownInvariants = []invariant{
	{runningNotPending, "the reported phase of a pod never leaves Running for Pending unless a fault affected the pod"},
	{terminalNeverRestarts, "no container of a pod is created after a terminal phase was reported"},
	{terminalMeansStopped, "when a terminal phase is reported, no process of the pod exists"},
	{deletedAfterCleanup, "when a pod has been deleted from the API, no process of it exists"},
	{undisturbed, "a container that does not exit by itself runs until it is stopped, unless a fault affected its pod: neither the death of the agent nor of containerd terminates it"},
	{gracePeriodGiven, "a deleted pod has its grace period: it exits with its own exit code, or is killed after the grace period and not before"},
	{logsReadable, "log files have the runtime's format and no duplicate lines; no line is lost unless containerd was killed meanwhile"},
	{agentKeepsRunning, "an agent that has started serving terminates only if it is killed"},
	{converges, "within the bound after the last fault, each pod is in its desired state, its status matches the runtime, and agent and node are healthy"},
	{nothingLeft, "no sandbox, container, process, shim, mount, cgroup or directory of a deleted pod remains"},
}

// invariants returns all invariants, those of package sim first.
func invariants() (all []invariant) {
	for _, inv := range sim.Invariants() {
		if ofSim(inv.Name) {
			all = append(all, invariant{inv.Name, inv.Description})
		}
	}
	return append(all, ownInvariants...)
}
