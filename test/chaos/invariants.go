package chaos

// An invariant must hold in every run. Invariants of package sim that can be observed from
// outside have the same names here.
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

var invariants = []invariant{
	{oneInstance, "no two instances of a container run at the same time, according to the runtime and to the processes of the machine"},
	{oneSandbox, "a pod has at most one ready sandbox"},
	{restartCountIncreases, "each instance of a container has a higher attempt than the previous ones"},
	{reportedRestartCount, "the reported restartCount of a container never decreases"},
	{terminalPhaseFinal, "the reported phase of a pod never leaves Succeeded or Failed, and never leaves Running for Pending unless a fault affected the pod"},
	{reportedInstanceNewer, "a status never reports an earlier instance of a container than the status before"},
	{terminalNeverRestarts, "no container of a pod is created after a terminal phase was reported"},
	{terminalMeansStopped, "when a terminal phase is reported, no process of the pod exists"},
	{notReady, "a status with a terminal phase is not Ready"},
	{deletedAfterCleanup, "when a pod has been deleted from the API, no process of it exists"},
	{exitCodesCorrect, "the reported exit code of an instance is its exit code"},
	{undisturbed, "a container that does not exit by itself runs until it is stopped, unless a fault affected its pod: neither the death of the agent nor of containerd terminates it"},
	{gracePeriodGiven, "a deleted pod has its grace period: it exits with its own exit code, or is killed after the grace period and not before"},
	{logsReadable, "log files have the runtime's format and no duplicate lines; no line is lost unless containerd was killed meanwhile"},
	{agentKeepsRunning, "an agent that has started serving terminates only if it is killed"},
	{converges, "within the bound after the last fault, each pod is in its desired state, its status matches the runtime, and agent and node are healthy"},
	{nothingLeft, "no sandbox, container, process, shim, mount, cgroup or directory of a deleted pod remains"},
}
