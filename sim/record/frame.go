package record

import (
	"encoding/json"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Frame is one entry of a recording: At, and exactly one of the other fields. Frames are in the
// order in which the recorder was notified of them: operations in the order of their ends.
type Frame struct {
	// At is the time of the entry, the end of an operation, as measured by the monotonic clock
	// since Header.Start. It continues across the files of a recording.
	At time.Duration `json:"at"`

	Header    *Header    `json:"header,omitempty"`
	Pods      *Pods      `json:"pods,omitempty"`
	Call      *Call      `json:"call,omitempty"`
	Event     *Event     `json:"event,omitempty"`
	Probe     *Probe     `json:"probe,omitempty"`
	Operation *Operation `json:"operation,omitempty"`
	Status    *Status    `json:"status,omitempty"`
	Draw      *Draw      `json:"draw,omitempty"`
	Agent     *Agent     `json:"agent,omitempty"`
	State     *State     `json:"state,omitempty"`
	Pause     *Pause     `json:"pause,omitempty"`
	Dropped   *Dropped   `json:"dropped,omitempty"`
	End       *End       `json:"end,omitempty"`
}

// A Header is the first frame of each file.
type Header struct {
	// Start is the wall clock at the start of the recording, the same in all of its files.
	Start time.Time `json:"start"`

	// Wall is the wall clock at the start of this file. Its difference from Start plus At is
	// the adjustment of the clock meanwhile.
	Wall time.Time `json:"wall"`

	// File is the number of the file in its recording, from 1.
	File int `json:"file"`

	// Node, Versions and Configuration are copied from Config.
	Node          string            `json:"node,omitempty"`
	Versions      map[string]string `json:"versions,omitempty"`
	Configuration json.RawMessage   `json:"configuration,omitempty"`
}

// Pods is a set of desired pods that a source delivered, as the difference from the previous set of
// the source in the file. The order of the pods is not recorded.
type Pods struct {
	Source string `json:"source"`

	// Complete marks the set of a source at the start of a later file of the recording. The
	// source did not deliver it at that time.
	Complete bool `json:"complete,omitempty"`

	// Changed are the pods that were added or changed, with masked secrets.
	Changed []*v1.Pod `json:"changed,omitempty"`

	// Removed are the pods that are not in the set anymore.
	Removed []types.UID `json:"removed,omitempty"`
}

// A Call is a call of the CRI. It started at At minus Took.
type Call struct {
	// Method is the name of the RPC: "RunPodSandbox".
	Method string        `json:"method"`
	Took   time.Duration `json:"took,omitempty"`

	// Pending marks a call that has not returned for Took. Another frame follows when it
	// returns.
	Pending bool `json:"pending,omitempty"`

	// Request and Answer are the messages of the RPC in protobuf's JSON form, with masked
	// secrets. Lists in an answer are sorted by ID. Answer is nil if there is an error. A message
	// that is not valid UTF-8 is nil.
	Request json.RawMessage `json:"request,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	Error   *Error          `json:"error,omitempty"`

	// Slot is the number of the slot that Request and Answer are kept in, and Same that of the
	// slot that they are in already, so that equal answers are written once. Slots are numbered
	// from 1; zero means none. Read sets Request and Answer of a frame with Same.
	Slot int `json:"slot,omitempty"`
	Same int `json:"same,omitempty"`
}

// An Event is an event of the CRI runtime: a ContainerEventResponse in protobuf's JSON form.
type Event struct {
	Message json.RawMessage `json:"message"`
}

// A Probe is one try of a probe handler. It started at At minus Took.
type Probe struct {
	Pod         types.UID     `json:"pod"`
	Container   string        `json:"container"`
	ContainerID string        `json:"containerID,omitempty"`
	Kind        string        `json:"kind"` // "Liveness", "Readiness", "Startup"
	Took        time.Duration `json:"took,omitempty"`

	// Result is "success" or "failure". Empty if there is an error.
	Result  string `json:"result,omitempty"`
	Warning bool   `json:"warning,omitempty"`

	// Output is the reason. It is masked for exec probes, and Detail is always masked, since
	// they are texts of the container.
	Output string `json:"output,omitempty"`
	Detail string `json:"detail,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// An Operation is an operation on a volume or a cgroup. It started at At minus Took.
type Operation struct {
	// Component is "volume" or "cgroup".
	Component string `json:"component"`

	// Name is volume.OperationInfo.Operation, or "ensure", "remove", "collect", or "missing": the agent found that the
	// cgroup of a pod does not exist.
	Name string        `json:"name"`
	Took time.Duration `json:"took,omitempty"`

	Pod    types.UID `json:"pod,omitempty"`
	Plugin string    `json:"plugin,omitempty"`
	Volume string    `json:"volume,omitempty"`
	Error  *Error    `json:"error,omitempty"`
}

// A Status is a call of the status sink. It started at At minus Took.
type Status struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	UID       types.UID     `json:"uid"`
	Took      time.Duration `json:"took,omitempty"`

	// Status is the status that was written. Nil for a call of DeletePod.
	Status *v1.PodStatus `json:"status,omitempty"`
	Error  *Error        `json:"error,omitempty"`
}

// A Draw is a random number that the agent drew.
type Draw struct {
	Name  string  `json:"name"` // of the distribution: "prober"
	Value float64 `json:"value"`

	// Of is the delay that Value is the factor of. Zero for other numbers, and in older recordings.
	Of time.Duration `json:"of,omitempty"`

	// Pod is the pod that it was drawn for. Empty for other numbers, and in older recordings.
	Pod types.UID `json:"pod,omitempty"`
}

// An Agent is what [Recorder.Agent] has wrapped. It is in the first file only, and not in older recordings.
type Agent struct {
	// Sources are the names of all sources, sorted.
	Sources []string `json:"sources"`

	// Probes and Cgroups report whether the agent has these subsystems.
	Probes  bool `json:"probes,omitempty"`
	Cgroups bool `json:"cgroups,omitempty"`
}

// Dropped reports that frames are missing here.
type Dropped struct {
	Count  int    `json:"count"`
	Reason string `json:"reason"` // "queue full", "write failed", "frame too large", or why a frame has no JSON form
}

// End is the last frame of each file that was completed.
type End struct {
	// Rotated reports that another file of the recording follows.
	Rotated bool `json:"rotated,omitempty"`
}

// An Error is an error that an operation returned.
type Error struct {
	Message string `json:"message"`

	// Code is the name of the gRPC status code, also for an error of a context. Empty if there
	// is none.
	Code string `json:"code,omitempty"`

	// Exit is the exit code of a command that failed. Nil if there is none.
	Exit *int `json:"exit,omitempty"`
}
