package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// formatVersion is what each record says it is written in. A change that an
// older program would misread makes it one higher.
const formatVersion = 1

// The reasons of an exit, as ContainerStatus shows them.
const (
	reasonCompleted  = "Completed"
	reasonError      = "Error"
	reasonStartError = "StartError"
	reasonLost       = "ContainerStatusUnknown"
)

// Exit codes that no program chose.
const (
	codeStartError = 128 // the command could not be executed
	codeLost       = 137 // the exit was not seen by anybody
)

// A sandboxRecord is sandboxes/<id>/sandbox.json. The agent alone writes it.
type sandboxRecord struct {
	Version int    `json:"version"`
	ID      string `json:"id"`

	// CreatedAt is in nanoseconds since 1970, as in CRI and in every record.
	CreatedAt int64 `json:"createdAt"`

	// Ready goes from true to false once, before the containers are killed.
	Ready bool `json:"ready"`

	Name         string            `json:"name"`
	Namespace    string            `json:"namespace"`
	UID          string            `json:"uid"`
	Attempt      uint32            `json:"attempt"`
	Labels       map[string]string `json:"labels,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	LogDirectory string            `json:"logDirectory,omitempty"`

	// The namespace modes that were asked for, as numbers of CRI's
	// NamespaceMode. They are kept to be told again; nothing obeys them.
	Network  int32  `json:"network"`
	PID      int32  `json:"pid"`
	IPC      int32  `json:"ipc"`
	TargetID string `json:"targetID,omitempty"`

	// IP is empty for a sandbox in the host's network.
	IP string `json:"ip,omitempty"`
}

func (r sandboxRecord) check() error { return checkHead(r.Version, r.ID) }

// A containerRecord is containers/<id>/container.json: what was asked for,
// resolved. It is written once, by CreateContainer, and never changed; the
// supervisor reads it.
type containerRecord struct {
	Version          int               `json:"version"`
	ID               string            `json:"id"`
	SandboxID        string            `json:"sandboxID"`
	CreatedAt        int64             `json:"createdAt"`
	Name             string            `json:"name"`
	Attempt          uint32            `json:"attempt"`
	Image            string            `json:"image,omitempty"`
	UserImage        string            `json:"userImage,omitempty"`
	ImageAnnotations map[string]string `json:"imageAnnotations,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	Annotations      map[string]string `json:"annotations,omitempty"`
	Mounts           []mountRecord     `json:"mounts,omitempty"`

	// StopSignal is a number of the host, 0 if none was asked for.
	StopSignal int `json:"stopSignal,omitempty"`

	Process processSpec `json:"process"`
}

func (r containerRecord) check() error {
	if err := checkHead(r.Version, r.ID); err != nil {
		return err
	}
	if !validID(r.SandboxID) {
		return fmt.Errorf("sandboxID %q is no identifier", r.SandboxID)
	}
	if r.Process.Path == "" || len(r.Process.Args) == 0 {
		return errors.New("process has no command")
	}
	return nil
}

// A mountRecord is a mount that was asked for and not made.
type mountRecord struct {
	ContainerPath string `json:"containerPath"`
	HostPath      string `json:"hostPath"`
	Readonly      bool   `json:"readonly,omitempty"`
}

// A processSpec is all that the supervisor needs to start a process.
type processSpec struct {
	// Path is the executable, Args the whole argv.
	Path string   `json:"path"`
	Args []string `json:"args"`

	// Env is the whole environment. Values can be any bytes, which strings of
	// JSON cannot.
	Env [][]byte `json:"env"`

	// Dir is the working directory, absolute.
	Dir string `json:"dir"`

	// User is nil if the process runs as the agent does.
	User *credential `json:"user,omitempty"`

	// NoNewPrivs: set-user-ID executables give nothing (Linux).
	NoNewPrivs bool `json:"noNewPrivs,omitempty"`

	// LogPath is absolute; empty: the output is thrown away.
	LogPath string `json:"logPath,omitempty"`
}

// environ is Env as package os wants it.
func (p processSpec) environ() []string {
	env := make([]string, len(p.Env))
	for i, kv := range p.Env {
		env[i] = string(kv)
	}
	return env
}

// A credential is the user and groups of a process.
type credential struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
}

// An identity names one process for good: a PID is used again, a PID with its
// start is not.
type identity struct {
	PID int `json:"pid"`

	// Start is what processStart said of it; its form is the platform's. An
	// empty one matches nothing.
	Start string `json:"start"`
}

// A processRecord is containers/<id>/process.json. The supervisor alone
// writes it: once before it starts the process, with Process zero, and once
// after. Its existence means that the one start which a container has is used
// up.
type processRecord struct {
	Version    int      `json:"version"`
	ID         string   `json:"id"`
	Supervisor identity `json:"supervisor"`
	Process    identity `json:"process"`
	StartedAt  int64    `json:"startedAt,omitempty"`
}

func (r processRecord) check() error {
	if err := checkHead(r.Version, r.ID); err != nil {
		return err
	}
	// kill(2) gives -1, 0 and 1 meanings that no file may choose.
	for _, id := range []identity{r.Supervisor, r.Process} {
		if id.PID < 0 || id.PID == 1 {
			return fmt.Errorf("pid %d is not one of ours", id.PID)
		}
	}
	return nil
}

// An exitRecord is exits/<container id>.json. The supervisor writes it as its
// last act; if it was killed before it could, the agent that notices does.
type exitRecord struct {
	Version    int    `json:"version"`
	ID         string `json:"id"`
	Code       int32  `json:"code"`
	Signal     int    `json:"signal,omitempty"`
	StartedAt  int64  `json:"startedAt"`
	FinishedAt int64  `json:"finishedAt"`
	Reason     string `json:"reason"`
	Message    string `json:"message,omitempty"`
}

func (r exitRecord) check() error { return checkHead(r.Version, r.ID) }

// newExit says how a process ended: signal 0 means that it chose code itself.
func newExit(id string, code, signal int, started, finished time.Time) exitRecord {
	if signal != 0 {
		code = 128 + signal
	}
	reason := reasonError
	if code == 0 {
		reason = reasonCompleted
	}
	return exitRecord{
		Version: formatVersion, ID: id, Code: int32(code), Signal: signal, Reason: reason,
		StartedAt: started.UnixNano(), FinishedAt: finished.UnixNano(),
	}
}

type record interface {
	sandboxRecord | containerRecord | processRecord | exitRecord
	check() error
}

// decode reads a record and refuses one that a program of ours cannot have
// written: half a file, another version, an identifier that is none.
func decode[T record](data []byte) (T, error) {
	var rec, none T
	if err := json.Unmarshal(data, &rec); err != nil {
		return none, err
	}
	if err := rec.check(); err != nil {
		return none, err
	}
	return rec, nil
}

func checkHead(version int, id string) error {
	if version != formatVersion {
		return fmt.Errorf("format version %d, this program reads %d", version, formatVersion)
	}
	if !validID(id) {
		return fmt.Errorf("id %q is no identifier", id)
	}
	return nil
}

// idLength is that of containerd's identifiers, which people and tools know.
const idLength = 64

// validID tells whether s can be an identifier, and so a file name.
func validID(s string) bool {
	if len(s) != idLength {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
