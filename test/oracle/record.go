package oracle

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Record is one observation of a kubelet from outside. At, and exactly one of the pointers, are set.
type Record struct {
	At time.Duration `json:"at"` // since the start of the scenario

	Step    *string  `json:"step,omitempty"`    // a step was carried out: its text
	Agent   *Agent   `json:"agent,omitempty"`   // the kubelet was started, killed, or has exited
	Call    *Call    `json:"call,omitempty"`    // a call of the CRI has returned
	Change  *Change  `json:"change,omitempty"`  // the state of the runtime changed
	Pod     *Version `json:"pod,omitempty"`     // a watcher of the API server got a pod
	Request *Request `json:"request,omitempty"` // the kubelet changed a pod in the API server
	Event   *Event   `json:"event,omitempty"`   // the kubelet wrote an event
	Mark    *string  `json:"mark,omitempty"`    // the phase of the run: one of the marks
}

// The marks of a run.
const (
	markQuiet   = "quiet"   // no step has an effect any longer
	markSettled = "settled" // the pods should have reached their final state
	markEnded   = "ended"   // the remaining pods have been deleted
	markStalled = "stalled" // the machine was too slow: latencies are not checked
)

// An Agent is a change of the process of the kubelet.
type Agent struct {
	Number int    `json:"number"` // of the process, from 1
	What   string `json:"what"`   // "started", "killed" or "exited"
}

// A Call is a call of the CRI that changes something, or that runs a command.
type Call struct {
	Method    string        `json:"method"`
	Pod       types.UID     `json:"pod,omitempty"`
	Container string        `json:"container,omitempty"`
	ID        string        `json:"id,omitempty"` // of the container or sandbox
	Took      time.Duration `json:"took"`
	Timeout   int64         `json:"timeout,omitempty"` // of StopContainer, in seconds
	Command   []string      `json:"command,omitempty"` // of ExecSync
	Exit      int32         `json:"exit,omitempty"`    // of ExecSync
	Image     string        `json:"image,omitempty"`   // of PullImage
	Err       string        `json:"err,omitempty"`
}

// A Change is a transition of a sandbox or a container in the runtime, whatever the runtime reports.
type Change struct {
	Pod       types.UID `json:"pod"`
	Container string    `json:"container,omitempty"` // empty for a sandbox
	ID        string    `json:"id"`
	Sandbox   string    `json:"sandbox,omitempty"`
	Image     string    `json:"image,omitempty"`
	Attempt   uint32    `json:"attempt"`
	To        string    `json:"to"` // "ready", "not ready", "created", "running", "exited", "absent"
	ExitCode  int32     `json:"exitCode,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Stopped   bool      `json:"stopped,omitempty"` // exited, after StopContainer or StopPodSandbox was called
}

// A Version is a version of a pod in the API server.
type Version struct {
	Pod     *v1.Pod `json:"pod"`
	Deleted bool    `json:"deleted,omitempty"`
}

// A Request is a request of the kubelet that changes a pod.
type Request struct {
	Verb string `json:"verb"` // "patch" or "delete"
	Pod  string `json:"pod"`  // its name
	Code int    `json:"code"` // of the response; 0 if there was none
}

// An Event is an Event about a pod.
type Event struct {
	Pod     types.UID `json:"pod"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int32     `json:"count,omitempty"`
}

// A recorder collects records. Its methods are safe for concurrent use.
type recorder struct {
	start time.Time

	mu      sync.Mutex
	records []Record
	lists   int // calls of the CRI that change nothing
}

func newRecorder() *recorder { return &recorder{start: time.Now()} }

// add adds a record at the present time.
func (r *recorder) add(rec Record) { r.addAt(time.Now(), rec) }

// addAt adds a record at a time.
func (r *recorder) addAt(at time.Time, rec Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.At = at.Sub(r.start)
	r.records = append(r.records, rec)
}

// answered sets the code of a request that was recorded when it began.
func (r *recorder) answered(q *Request, code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.Code = code
}

func (r *recorder) mark(m string) { r.add(Record{Mark: &m}) }

// listed counts a call that changes nothing.
func (r *recorder) listed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lists++
}

// all returns the records so far, in order of time.
func (r *recorder) all() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.records)
	slices.SortStableFunc(out, func(a, b Record) int { return cmp.Compare(a.At, b.At) })
	return out
}

// A Recording is a scenario with what was recorded when a kubelet ran it.
type Recording struct {
	Kubelet  string   `json:"kubelet"` // the version that its node reported
	API      string   `json:"api"`     // the API server
	Scenario string   `json:"scenario"`
	Lists    int      `json:"lists"` // calls of the CRI that are not recorded
	Records  []Record `json:"records"`
	Log      string   `json:"log,omitempty"` // the end of the kubelet's log, if it has exited
}

// saveRecording writes a recording to a file, compressed if its name ends with .gz.
func saveRecording(file string, run *Recording) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var w io.Writer = f
	if strings.HasSuffix(file, ".gz") {
		z := gzip.NewWriter(f)
		defer func() { err = errors.Join(err, z.Close()) }()
		w = z
	}
	return json.NewEncoder(w).Encode(run)
}

// loadRecording reads a file of saveRecording.
func loadRecording(file string) (_ *Recording, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var r io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	run := new(Recording)
	if err := json.NewDecoder(r).Decode(run); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return run, nil
}
