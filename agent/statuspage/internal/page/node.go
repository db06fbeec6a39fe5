package page

import "time"

// A Node is the state of a node at one time. The zero value is a node whose state is not
// known.
type Node struct {
	Name    string
	Runtime string // its display name: "containerd 2.4.2"
	At      time.Time
	Started time.Time // of the agent

	// Agent is the usage of the agent itself: "31 MiB of anonymous memory (70 MiB resident)".
	Agent string

	Checks     []Check
	Conditions []string // pressure conditions of the node that are true: "MemoryPressure"
	Pods       []Pod
	Signals    []Signal
	Images     Images
	Events     []Event // newest first

	// Problems are the reasons why a part of the state is missing.
	Problems []string
}

// A Check is the result of a health check.
type Check struct {
	Name string
	Err  string // empty: it succeeded
}

// A Pod is a desired pod, or one that has not been removed yet.
type Pod struct {
	UID, Namespace, Name string

	Source   string // "file", "api"
	Phase    string
	Reason   string // of the phase
	Message  string
	QOS      string
	IPs      []string
	Created  time.Time
	Deleting bool // its termination was requested

	Conditions []Condition
	Containers []Container
	Volumes    []Volume

	// Why explains its state and the next step, the cause of a problem first. Err is the
	// error of the last attempt to run it; empty: there was none.
	Why  string
	Err  string
	Plan Plan

	// Usage. Nil: not known.
	CPU    *uint64 // in billionths of a CPU
	Memory *uint64 // in bytes, the working set
}

// A Condition of a pod.
type Condition struct {
	Type, Status, Reason, Message string
	Since                         time.Time
}

// A Container of a pod, in the order in which they start.
type Container struct {
	Name, Image string
	Kind        string // "init", "sidecar", "ephemeral"; empty: a regular container
	State       string // "waiting", "running", "exited"
	Reason      string
	Message     string
	ExitCode    int32     // of an exited container
	Since       time.Time // start of the state; zero: not known
	Ready       bool
	Restarts    int32
	Last        string // termination of the previous instance
	ID          string
	LogPath     string // the log of the newest instance; empty: not known
	Probes      []Probe
}

// A Probe of a container, with its last attempts.
type Probe struct {
	Kind   string // "startup", "readiness", "liveness"
	Asks   string // "GET :8080/healthz"
	Period time.Duration
	Runs   []Run // oldest first
}

// A Run is one attempt of a probe.
type Run struct {
	At      time.Time
	Took    time.Duration
	Outcome Outcome
	Output  string
}

// An Outcome is the result of an attempt.
type Outcome int

// Outcomes of a probe.
const (
	Failed Outcome = iota
	Passed
	Broken // the probe could not be carried out; it does not count
)

func (o Outcome) String() string { return [...]string{"failed", "passed", "could not run"}[o] }

// A Plan has the actions that were last carried out for a pod.
type Plan struct {
	At      time.Time // zero: there is no plan yet
	Took    time.Duration
	Steps   []string // nil: nothing was to be done
	Results []Result
	Looked  time.Time // when it was last found that nothing is to be done
}

// A Result is the result of one action of a plan.
type Result struct {
	Action string // "StartContainer main"
	Err    string // empty: it succeeded
}

// A Volume of a pod.
type Volume struct {
	Name, Kind, State string
	Path              string
	Doing             string // step in progress
	Err               string
	RetryAt           time.Time
	Since             time.Time
	Used              *uint64 // bytes; nil: not known
}

// A Signal is an available resource of the node.
type Signal struct {
	Name     string
	Unit     Unit
	Capacity int64
	Points   []Point // oldest first
	Lines    []Line
	Met      string // description of the threshold that is met; empty: none
}

// A Unit is the unit of a signal.
type Unit int

// Units of signals.
const (
	Bytes Unit = iota
	Count
)

// A Point is one measurement.
type Point struct {
	At        time.Time
	Available int64
}

// A Line is an eviction threshold of a signal.
type Line struct {
	At   int64  // pods are evicted if less is available
	Text string // as configured: "100Mi", "10%"
	Soft bool   // the threshold has a grace period
	Wait time.Duration
}

// Images are the images of the node, and what garbage collection would remove.
type Images struct {
	None  string // why List is not known; empty: it is
	Disk  string // usage of their disk, and the thresholds
	Goes  string // what would be removed now
	List  []Image
	Bytes uint64 // of all images
}

// An Image of the node.
type Image struct {
	Name  string
	Bytes uint64
	Goes  bool
	Class string // "in use", "unused"
	Why   string
}

// An Event, with the number of its repetitions.
type Event struct {
	First, Last time.Time
	Count       int
	Warning     bool
	Reason      string
	Object      string // "default/web[main]"
	UID         string // of the pod; empty: the object is not a pod
	Message     string
}
