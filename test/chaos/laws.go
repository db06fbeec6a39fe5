package main

// A law is what has to hold whatever happens. Those of package sim that can be seen
// from outside have its names.
type law struct {
	name string
	says string
}

// The laws, by the names that a judge checks them under.
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
	{oneInstance, "of a container, no two instances run at once: in the runtime's lists, and among the machine's processes"},
	{oneSandbox, "a pod has no two sandboxes that are ready"},
	{attemptsGrow, "each instance of a container has a higher attempt than those before it"},
	{restartsGrow, "the restartCount that is told of a container never decreases"},
	{staysOver, "the phase that is told of a pod never leaves Succeeded or Failed, nor goes back from Running unless a fault was about the pod"},
	{instForward, "a status does not go back to an earlier instance of a container"},
	{overIsOver, "no container of a pod is made after a terminal phase was told of it"},
	{terminalEnd, "when a terminal phase is told, no process of the pod lives"},
	{notReady, "a status with a terminal phase does not say Ready"},
	{goneIsGone, "when a pod is gone from the API, no process of it lives"},
	{trueResults, "the exit code that is told of an instance is the one it had"},
	{undisturbed, "a container that runs until it is told to stop does so, unless a fault was about its pod: neither an agent nor a containerd that dies ends it"},
	{graceGiven, "who is deleted has its grace period: it ends by itself with its own exit code, or is killed after it and not before"},
	{logsRead, "log files have the runtime's format and no line twice; none is lost unless containerd was killed meanwhile"},
	{agentStays, "an agent that has begun to serve ends only if it is killed"},
	{converges, "within the bound after the last fault, each pod is what is wanted of it, its status says what the runtime says, and agent and node are well"},
	{nothingLeft, "of a deleted pod no sandbox, container, process, shim, mount, cgroup or directory is left"},
}
