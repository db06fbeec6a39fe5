package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/kubeparts/kubeparts/sim/record"
)

// changes are the methods that change something: their calls are compared. ExecSync is none, because
// the exec probes of a replay do not call it.
var changes = map[string]bool{
	"RunPodSandbox": true, "StopPodSandbox": true, "RemovePodSandbox": true, "CreateContainer": true, "StartContainer": true,
	"StopContainer": true, "RemoveContainer": true, "UpdateContainerResources": true, "UpdatePodSandboxResources": true,
	"PullImage": true, "RemoveImage": true, "ReopenContainerLog": true, "CheckpointContainer": true, "CheckpointPod": true,
	"RestorePod": true, "UpdateRuntimeConfig": true,
}

// unreplayed are the methods of changes that are called by components that are not replayed: image garbage collection,
// log rotation, resizes, checkpoints, and the network of the node. They are not compared.
var unreplayed = map[string]bool{
	"RemoveImage": true, "ReopenContainerLog": true, "UpdateContainerResources": true, "UpdatePodSandboxResources": true,
	"CheckpointContainer": true, "CheckpointPod": true, "RestorePod": true, "UpdateRuntimeConfig": true,
}

// A call is a recorded call of the CRI.
type call struct {
	index      int // of its frame
	begin, end time.Duration
	hangs      bool // it did not return before the end of the recording
	method     string
	request    json.RawMessage
	answer     json.RawMessage
	err        *record.Error
}

// fields are the parts of requests that identify what a call is for.
type fields struct {
	Config *struct {
		Metadata metadata `json:"metadata"`
	} `json:"config"`
	SandboxConfig *struct {
		Metadata metadata `json:"metadata"`
	} `json:"sandboxConfig"`
	PodSandboxID string `json:"podSandboxId"`
	ContainerID  string `json:"containerId"`
	Image        *struct {
		Image string `json:"image"`
	} `json:"image"`
}

type metadata struct {
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Attempt   uint32 `json:"attempt"`
}

// parse returns the fields of a request. A request of another form has none.
func parse(request json.RawMessage) (f fields) {
	_ = json.Unmarshal(request, &f)
	return f
}

// canonical returns JSON without white space and with sorted keys. protojson's white space varies.
func canonical(text json.RawMessage) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return ""
	}
	out, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(out)
}

// encode returns the JSON form of a message, as in a recording; nil if it has none.
func encode(m proto.Message) json.RawMessage {
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil
	}
	return text
}

// decode decodes a recorded message.
func decode(text json.RawMessage, m proto.Message) error {
	if len(text) == 0 {
		return nil
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, m); err != nil {
		return status.Errorf(codes.Internal, "replay: recorded answer: %v", err)
	}
	return nil
}

// newError returns the error that a recorded call returned; nil for nil.
func newError(e *record.Error) error {
	if e == nil {
		return nil
	}
	var err error = replayedError(e.Message)
	for code := codes.OK + 1; code <= codes.Unauthenticated; code++ {
		if e.Code == code.String() {
			message := strings.TrimPrefix(e.Message, fmt.Sprintf("rpc error: code = %s desc = ", code))
			err = status.Error(code, message)
		}
	}
	if e.Exit != nil {
		return exitError{err, *e.Exit}
	}
	return err
}

// A replayedError is the text of a recorded error.
type replayedError string

func (e replayedError) Error() string { return string(e) }

// An exitError is the error of a command, as that of k8s.io/utils/exec.
type exitError struct {
	error
	code int
}

func (e exitError) String() string  { return e.Error() }
func (e exitError) Exited() bool    { return true }
func (e exitError) ExitStatus() int { return e.code }
func (e exitError) Unwrap() error   { return e.error }

// cutID returns the name of the runtime and the ID in it of a container ID in a status.
func cutID(id string) (name, raw string, ok bool) { return strings.Cut(id, "://") }
