package cri

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/runtime"
)

// A journal keeps what has to outlive the agent and what a CRI runtime has no
// place for, a record per pod, in the directory of the pod. All of it can be
// lost: then counts are taken from what the runtime and the log directory still
// show, resources from what the runtime reports, a hook is not run again, and a pod that
// starts over does so without delay.
type journal struct {
	dir string // of the pods
	log *slog.Logger

	// mu guards pods. Records are replaced, never changed.
	mu   sync.Mutex
	pods map[types.UID]*record
}

// A record is what is kept of one pod.
type record struct {
	// Attempts is how many attempts were made at a sandbox.
	Attempts uint32 `json:"attempts,omitempty"`

	// Restarts is the highest restart count that an instance of each container
	// has had, also when all of them have been removed (L-53).
	Restarts map[string]int32 `json:"restarts,omitempty"`

	// First is, by container, the restart count of the first instance that was made
	// when nothing was left of earlier ones but their number: back-off counts from it.
	First map[string]int32 `json:"first,omitempty"`

	// Ended is, by container, the newest exit that delays its next start though
	// the instance is gone, removed so that its pod starts over (rt-140).
	Ended map[string]exit `json:"ended,omitempty"`

	// Over is, by regular container, the code with which it has exited for good:
	// an operator who removes its instance does not bring it back (st-50).
	Over map[string]int32 `json:"over,omitempty"`

	// Unhooked names, by container, the instance whose postStart hook has not
	// been seen to end (lq-14).
	Unhooked map[string]string `json:"unhooked,omitempty"`

	// Actuated is, by container, what its newest instance was last given
	// (al-1, al-21).
	Actuated map[string]actuated `json:"actuated,omitempty"`

	// Pod is what the pod as a whole was last given; nil if it says nothing of
	// that.
	Pod *v1.ResourceRequirements `json:"pod,omitempty"`
}

// Actuated resources are those that the runtime accepted for an instance.
type actuated struct {
	ID        string                  `json:"id"`
	Resources v1.ResourceRequirements `json:"resources"`
}

// An exit is what back-off looks at of an instance that has exited.
type exit struct {
	RestartCount int32     `json:"restartCount"`
	Hash         uint64    `json:"hash,omitempty"`
	Created      time.Time `json:"created,omitzero"`
	Started      time.Time `json:"started,omitzero"`
	Finished     time.Time `json:"finished,omitzero"`
	ExitCode     int32     `json:"exitCode"`
}

// exits returns Ended as the planner takes it; nil if there is none.
func (rec *record) exits() map[string]*runtime.ContainerStatus {
	if len(rec.Ended) == 0 {
		return nil
	}
	all := make(map[string]*runtime.ContainerStatus, len(rec.Ended))
	for name, e := range rec.Ended {
		all[name] = &runtime.ContainerStatus{
			Name: name, State: runtime.ContainerExited, RestartCount: e.RestartCount, Hash: e.Hash,
			CreatedAt: e.Created, StartedAt: e.Started, FinishedAt: e.Finished, ExitCode: e.ExitCode,
		}
	}
	return all
}

const journalFile = "runtime.json"

func newJournal(podsDir string, log *slog.Logger) *journal {
	return &journal{dir: podsDir, log: log, pods: map[types.UID]*record{}}
}

// of returns the record of a pod, which is shared: it must not be changed. It is
// empty if there is none.
func (j *journal) of(uid types.UID) *record {
	j.mu.Lock()
	defer j.mu.Unlock()
	if rec, ok := j.pods[uid]; ok {
		return rec
	}
	rec := new(record)
	if path := j.path(uid); path != "" {
		err := checkpoint.Read(path, rec)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			j.log.Warn("a pod's record can't be read: what it held is derived", "uid", uid, "err", err)
			rec = new(record)
		}
	}
	j.pods[uid] = rec
	return rec
}

// update changes the record of a pod, which nobody else does meanwhile: syncs of
// one pod don't overlap. If it can't be written, what is in memory counts:
// failing to remember is no reason not to run.
func (j *journal) update(pod *v1.Pod, change func(rec *record)) {
	old := j.of(pod.UID)
	rec := &record{
		Attempts: old.Attempts, Pod: old.Pod,
		Restarts: cloned(old.Restarts), Unhooked: cloned(old.Unhooked), Actuated: cloned(old.Actuated),
		Ended: cloned(old.Ended), Over: cloned(old.Over), First: cloned(old.First),
	}
	change(rec)
	j.mu.Lock()
	j.pods[pod.UID] = rec
	j.mu.Unlock()
	path := j.path(pod.UID)
	if path == "" {
		return
	}
	err := os.MkdirAll(filepath.Dir(path), 0o750)
	if err == nil {
		err = checkpoint.Write(path, rec)
	}
	if err != nil {
		j.log.Warn("a pod's record can't be written", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "err", err)
	}
}

// forget drops the records of the pods that are gone, and their files.
func (j *journal) forget(gone func(types.UID) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.pods, func(uid types.UID, _ *record) bool { return gone(uid) })
}

// path returns where the record of a pod is, or "" for a UID that names no
// directory below ours: it may come from a runtime that lies.
func (j *journal) path(uid types.UID) string {
	if !plain(string(uid)) {
		return ""
	}
	return filepath.Join(j.dir, string(uid), journalFile)
}

// cloned is maps.Clone that never returns nil.
func cloned[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}
