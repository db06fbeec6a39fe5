package page

import "time"

// A Node is all that is shown, at one moment. Its zero value is a node of which
// nothing is known, and shows as that.
type Node struct {
	Name    string
	Runtime string // what runs containers: "containerd", "plain processes"
	At      time.Time
	Started time.Time // the agent

	// Agent says what the agent itself uses: "31 MiB of memory, 25 goroutines".
	Agent string

	Checks     []Check
	Conditions []string // of the node, that are true and should not be: "MemoryPressure"
	Pods       []Pod
	Signals    []Signal
	Images     Images
	Events     []Event // newest first

	// Problems are why something is not shown: "the runtime did not answer …".
	Problems []string
}

// A Check is one thing that is well, or not.
type Check struct {
	Name string
	Err  string // empty: it is well
}

// A Pod is one that is wanted, or of which something is left.
type Pod struct {
	UID, Namespace, Name string

	Source   string // "file", "api"
	Phase    string
	Reason   string // of the phase
	Message  string
	QOS      string
	IPs      []string
	Created  time.Time
	Deleting bool // it was told to end

	Conditions []Condition
	Containers []Container
	Volumes    []Volume

	// Why says in words why it is where it is and what comes next.
	Why  string
	Plan Plan

	// Usage, nil if it is not known.
	CPU    *uint64 // in billionths of a CPU
	Memory *uint64 // in bytes, the working set
}

// A Condition is one of a pod.
type Condition struct {
	Type, Status, Reason, Message string
	Since                         time.Time
}

// A Container of a pod, in the order in which they start.
type Container struct {
	Name, Image string
	Kind        string // "init", "sidecar", "ephemeral"; empty: a regular one
	State       string // "waiting", "running", "exited"
	Reason      string
	Message     string
	ExitCode    int32     // of an exited one
	Since       time.Time // that it is in this state; zero: not known
	Ready       bool
	Restarts    int32
	Last        string // how the instance before ended, in words
	ID          string
	Probes      []Probe
}

// A Probe of a container, with what came of it.
type Probe struct {
	Kind   string // "startup", "readiness", "liveness"
	Asks   string // "GET :8080/healthz"
	Period time.Duration
	Runs   []Run // oldest first
}

// A Run is one run of a probe.
type Run struct {
	At      time.Time
	Took    time.Duration
	Outcome Outcome
	Output  string
}

// An Outcome is what a run of a probe has come to.
type Outcome int

// Outcomes of a probe.
const (
	Failed Outcome = iota
	Passed
	Broken // it could not be run, and counts for nothing
)

func (o Outcome) String() string { return [...]string{"failed", "passed", "could not run"}[o] }

// A Plan is the last step that was taken for a pod.
type Plan struct {
	At      time.Time // zero: none was made yet
	Took    time.Duration
	Steps   []string // in words; none: nothing was to be done
	Results []Result
	Looked  time.Time // when it was last seen that nothing more is to be done
}

// A Result is what one action of a plan has come to.
type Result struct {
	Action string // "StartContainer main"
	Err    string // empty: done
}

// A Volume of a pod.
type Volume struct {
	Name, Kind, State string
	Path              string
	Doing             string // a step that is being taken
	Err               string
	RetryAt           time.Time
	Since             time.Time
	Used              *uint64 // bytes; nil: not known
}

// A Signal is one figure of the node that must not become too low.
type Signal struct {
	Name     string
	Unit     Unit
	Capacity int64
	Points   []Point // of what is available, oldest first
	Lines    []Line
	Met      string // empty: no threshold is met; else which, since when
}

// A Unit is what a figure counts.
type Unit int

// Units of signals.
const (
	Bytes Unit = iota
	Count
)

// A Point is what was available at a time.
type Point struct {
	At        time.Time
	Available int64
}

// A Line is a threshold of a signal.
type Line struct {
	At   int64  // below this much pods are evicted
	Text string // as it was set: "100Mi", "10%"
	Soft bool   // after a grace period
	Wait time.Duration
}

// Images are those of the node, and what would become of them.
type Images struct {
	None  string // why there are none, or none can be shown; empty: List has them
	Disk  string // how full it is, and what follows: "41 % in use; images go from 85 % on"
	Goes  string // what a collection would remove now, in words
	List  []Image
	Bytes uint64 // of all of them
}

// An Image is one of the node.
type Image struct {
	Name    string
	Bytes   uint64
	Goes    bool
	Verdict string // "in use", "unused"
	Why     string
}

// An Event is something that happened, as often as it did.
type Event struct {
	First, Last time.Time
	Count       int
	Warning     bool
	Reason      string
	Object      string // "default/web[main]"
	UID         string // of the pod; empty: it is about something else
	Message     string
}
