package record

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// A State is a part of the state that an earlier agent has left on disk, as this one found it: a checkpoint
// file, or a status.
type State struct {
	// File is the path of a checkpoint below the root directory of the agent, with slashes:
	// [ProbesFile], or "pods/UID/runtime.json". Empty for a status.
	File string `json:"file,omitempty"`

	// Content is the content of the file, in JSON. Nil if the file is Damaged.
	Content json.RawMessage `json:"content,omitempty"`

	// Damaged reports that the file exists and cannot be read.
	Damaged bool `json:"damaged,omitempty"`

	// Pod and Status are a result of status.Config.Restore, with masked secrets.
	Pod    types.UID     `json:"pod,omitempty"`
	Status *v1.PodStatus `json:"status,omitempty"`
}

// Names of the recorded checkpoints: of the prober, and of package runtime/cri in the directory of each pod.
const (
	ProbesFile  = "probes.json"
	runtimeFile = "runtime.json"
)

// RuntimeState records the checkpoints of package runtime/cri below root, its cri.Dirs.Root. It must be called
// before the runtime is used, which changes them. A directory that cannot be read has no checkpoints. [Recorder.Agent]
// records the other state.
func (r *Recorder) RuntimeState(root string) {
	const pods = "pods"
	dirs, _ := os.ReadDir(filepath.Join(root, pods)) // the runtime reads single files only, too
	for _, d := range dirs {
		if d.IsDir() {
			r.checkpoint(filepath.Join(root, pods, d.Name(), runtimeFile), path.Join(pods, d.Name(), runtimeFile))
		}
	}
}

// checkpoint records a file under a name, if it exists.
func (r *Recorder) checkpoint(file, name string) {
	s := &State{File: name}
	switch err := checkpoint.Read(file, &s.Content); {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		s.Content, s.Damaged = nil, true
	}
	r.add(len(s.Content), func(*encoder) Frame { return Frame{State: s} })
}

// restored returns a function that records the results of next.
func (r *Recorder) restored(next func(types.UID) (v1.PodStatus, bool)) func(types.UID) (v1.PodStatus, bool) {
	return func(uid types.UID) (v1.PodStatus, bool) {
		s, ok := next(uid)
		if ok {
			own := s.DeepCopy()
			r.add(statusBytes, func(e *encoder) Frame { return Frame{State: &State{Pod: uid, Status: e.redact.status(own)}} })
		}
		return s, ok
	}
}
