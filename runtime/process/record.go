package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// formatVersion is the version of the records. It is incremented by changes that
// older programs would misread.
const formatVersion = 1

// The reasons of exits in ContainerStatus.
const (
	reasonCompleted  = "Completed"
	reasonError      = "Error"
	reasonStartError = "StartError"
	reasonLost       = "ContainerStatusUnknown"
)

// Exit codes not set by the command.
const (
	codeStartError = 128 // the command could not be executed
	codeLost       = 137 // the supervisor was killed before it recorded the exit
)

// A sandboxRecord is sandboxes/<id>/sandbox.json. Only the agent writes it.
type sandboxRecord struct {
	Version int    `json:"version"`
	ID      string `json:"id"`

	// CreatedAt is in nanoseconds since 1970, as in the CRI and all records.
	CreatedAt int64 `json:"createdAt"`

	// Ready is true until the sandbox is stopped; it is set to false before the
	// containers are killed.
	Ready bool `json:"ready"`

	Name         string            `json:"name"`
	Namespace    string            `json:"namespace"`
	UID          string            `json:"uid"`
	Attempt      uint32            `json:"attempt"`
	Labels       map[string]string `json:"labels,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	LogDirectory string            `json:"logDirectory,omitempty"`

	// The requested namespace modes, as numbers of the CRI's NamespaceMode. They
	// are reported but have no effect.
	Network  int32  `json:"network"`
	PID      int32  `json:"pid"`
	IPC      int32  `json:"ipc"`
	TargetID string `json:"targetID,omitempty"`

	// IP is empty for a sandbox in the host's network.
	IP string `json:"ip,omitempty"`
}

func (r sandboxRecord) check() error { return checkHead(r.Version, r.ID) }

// A containerRecord is containers/<id>/container.json, the resolved container
// configuration. CreateContainer writes it once; the supervisor reads it.
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

	// StopSignal is a signal number of the host; 0 means SIGTERM.
	StopSignal int `json:"stopSignal,omitempty"`

	Process processSpec `json:"process"`
}

func (r containerRecord) check() error {
	if err := checkHead(r.Version, r.ID); err != nil {
		return err
	}
	if !validID(r.SandboxID) {
		return fmt.Errorf("sandboxID %q is not a valid identifier", r.SandboxID)
	}
	if r.Process.Path == "" || len(r.Process.Args) == 0 {
		return errors.New("process has no command")
	}
	return nil
}

// A mountRecord is a requested mount. It is reported but not made.
type mountRecord struct {
	ContainerPath string `json:"containerPath"`
	HostPath      string `json:"hostPath"`
	Readonly      bool   `json:"readonly,omitempty"`
}

// A processSpec is the input of the supervisor for starting a process.
type processSpec struct {
	// Path is the executable, Args the complete argv.
	Path string   `json:"path"`
	Args []string `json:"args"`

	// Env is the complete environment. It is not []string because values need not
	// be valid UTF-8.
	Env [][]byte `json:"env"`

	// Dir is the working directory, absolute.
	Dir string `json:"dir"`

	// User is nil if the process runs as the user of the agent.
	User *credential `json:"user,omitempty"`

	// NoNewPrivs disables set-user-ID executables (Linux).
	NoNewPrivs bool `json:"noNewPrivs,omitempty"`

	// LogPath is absolute. If empty, the output is discarded.
	LogPath string `json:"logPath,omitempty"`
}

// environ returns Env in the form of package os.
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

// An identity identifies a process. PIDs are reused; a PID with its start time is
// not.
type identity struct {
	PID int `json:"pid"`

	// Start is the result of processStart; its form depends on the platform. An
	// empty one matches no process.
	Start string `json:"start"`
}

// A processRecord is containers/<id>/process.json. Only the supervisor writes
// it: once before it starts the process, with Process zero, and once after. If it
// exists, the container must not be started again.
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
	// For kill(2), -1 and 0 are groups of processes, and 1 is init.
	for _, id := range []identity{r.Supervisor, r.Process} {
		if id.PID < 0 || id.PID == 1 {
			return fmt.Errorf("invalid pid %d", id.PID)
		}
	}
	return nil
}

// An exitRecord is exits/<container id>.json. The supervisor writes it last; if
// the supervisor was killed before, the agent that detects this writes it.
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

// newExit returns the record of an exit; signal 0 means a normal exit with code.
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

// decode decodes and checks a record: it must be complete, have this version and
// a valid identifier.
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
		return fmt.Errorf("format version %d, expected %d", version, formatVersion)
	}
	if !validID(id) {
		return fmt.Errorf("id %q is not a valid identifier", id)
	}
	return nil
}

// idLength is the length of containerd's identifiers, which tools expect.
const idLength = 64

// validID reports whether s is a valid identifier, and so a file name.
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
