package main

// A law is an invariant. Those of package sim that can be observed from outside have the
// same names.
type law struct {
	name string
	says string
}

// The names of the laws.
const (
	oneInstance  = "one-live-instance"
	oneSandbox   = "one-ready-sandbox"
	attemptsGrow = "attempts-only-grow"
	restartsGrow = "restarts-only-grow"
	staysOver    = "terminal-stays"
	instForward  = "instances-only-forward"
	overIsOver   = "over-is-over"
	terminalEnd  = "terminal-means-stopped"
	notReady     = "terminal-not-ready"
	goneIsGone   = "deleted-when-gone"
	trueResults  = "results-are-true"
	undisturbed  = "undisturbed"
	graceGiven   = "grace-is-given"
	logsRead     = "logs-are-readable"
	agentStays   = "agent-stays"
	converges    = "converges"
	nothingLeft  = "nothing-is-left"
)

var laws = []law{
	{oneInstance, "no two instances of a container run at the same time, according to the runtime and to the processes of the machine"},
	{oneSandbox, "a pod has at most one ready sandbox"},
	{attemptsGrow, "each instance of a container has a higher attempt than the previous ones"},
	{restartsGrow, "the reported restartCount of a container never decreases"},
	{staysOver, "the reported phase of a pod never leaves Succeeded or Failed, and never leaves Running for Pending unless a fault affected the pod"},
	{instForward, "a status never reports an earlier instance of a container than the status before"},
	{overIsOver, "no container of a pod is created after a terminal phase was reported"},
	{terminalEnd, "when a terminal phase is reported, no process of the pod exists"},
	{notReady, "a status with a terminal phase is not Ready"},
	{goneIsGone, "when a pod has been deleted from the API, no process of it exists"},
	{trueResults, "the reported exit code of an instance is its exit code"},
	{undisturbed, "a container that does not exit by itself runs until it is stopped, unless a fault affected its pod: neither the death of the agent nor of containerd terminates it"},
	{graceGiven, "a deleted pod has its grace period: it exits with its own exit code, or is killed after the grace period and not before"},
	{logsRead, "log files have the runtime's format and no duplicate lines; no line is lost unless containerd was killed meanwhile"},
	{agentStays, "an agent that has started serving terminates only if it is killed"},
	{converges, "within the bound after the last fault, each pod is in its desired state, its status matches the runtime, and agent and node are healthy"},
	{nothingLeft, "no sandbox, container, process, shim, mount, cgroup or directory of a deleted pod remains"},
}
