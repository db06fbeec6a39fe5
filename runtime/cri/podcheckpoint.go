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

// checkpoints stores state that must outlive the agent and that a CRI runtime cannot
// store, in one file per pod. If a file is lost, restart counts are derived from the
// runtime and the log directory, resources from the runtime's report, a postStart hook
// is not repeated, and a pod whose containers are all restarted does so without delay.
type checkpoints struct {
	dir string // contains the pods' directories
	log *slog.Logger

	// mu guards pods. Values are replaced, never modified.
	mu   sync.Mutex
	pods map[types.UID]*podCheckpoint
}

// A podCheckpoint is the stored state of one pod.
type podCheckpoint struct {
	// Attempts is the number of attempts to create a sandbox.
	Attempts uint32 `json:"attempts,omitempty"`

	// Restarts is the highest restart count of the instances of each container,
	// including removed ones.
	Restarts map[string]int32 `json:"restarts,omitempty"`

	// First is, by container, the restart count of the first instance created after
	// all earlier ones had been removed: back-off counts from it.
	First map[string]int32 `json:"first,omitempty"`

	// Exits is, by container, the newest exit whose instance was removed because all
	// containers of the pod are restarted. It still delays the next start.
	Exits map[string]exit `json:"ended,omitempty"`

	// Terminated is, by regular container, the exit code of a container that will not
	// restart, so that removing its instance does not start it again.
	Terminated map[string]int32 `json:"over,omitempty"`

	// Replaced is, by container, the ID of the newest instance that was stopped in order to
	// start another one, until that has been created.
	Replaced map[string]string `json:"replaced,omitempty"`

	// PendingPostStart is, by container, the ID of the instance whose postStart hook
	// has not succeeded yet.
	PendingPostStart map[string]string `json:"unhooked,omitempty"`

	// Actuated is, by container, the resources last set on its newest instance.
	Actuated map[string]actuated `json:"actuated,omitempty"`

	// Expanded contains the containers whose command or arguments may contain values of
	// variables, which messages of the runtime about a failed start repeat.
	Expanded map[string]bool `json:"expanded,omitempty"`

	// Restore is the directory of the checkpoint from which the pod is being restored, "" if it is not.
	Restore string `json:"restore,omitempty"`

	// Pod is the pod-level resources that were last set, empty if the spec has none; nil if unknown.
	Pod *v1.ResourceRequirements `json:"pod,omitempty"`
}

// actuated is the resources that the runtime accepted for an instance.
type actuated struct {
	ID        string                  `json:"id"`
	Resources v1.ResourceRequirements `json:"resources"`
}

// An exit is the part of an exited instance that back-off depends on.
type exit struct {
	RestartCount int32     `json:"restartCount"`
	Hash         uint64    `json:"hash,omitempty"`
	Created      time.Time `json:"created,omitzero"`
	Started      time.Time `json:"started,omitzero"`
	Finished     time.Time `json:"finished,omitzero"`
	ExitCode     int32     `json:"exitCode"`
}

// exitStatuses returns Exits for plan.History; nil if there are none.
func (rec *podCheckpoint) exitStatuses() map[string]*runtime.ContainerStatus {
	if len(rec.Exits) == 0 {
		return nil
	}
	all := make(map[string]*runtime.ContainerStatus, len(rec.Exits))
	for name, e := range rec.Exits {
		all[name] = &runtime.ContainerStatus{
			Name: name, State: runtime.ContainerExited, RestartCount: e.RestartCount, Hash: e.Hash,
			CreatedAt: e.Created, StartedAt: e.Started, FinishedAt: e.Finished, ExitCode: e.ExitCode,
		}
	}
	return all
}

// countInstance records the restart count of an instance, so that none has it again.
func (rec *podCheckpoint) countInstance(container string, restartCount uint32) {
	rec.Restarts[container] = max(rec.Restarts[container], int32(restartCount))
}

// mustSync reports whether the record must survive a power failure: only it has the exits of removed instances,
// why instances were stopped, and whether a checkpoint is still to be used. The rest is about instances that
// have not survived, or is derived from the runtime and the log directory.
func (rec *podCheckpoint) mustSync() bool {
	return len(rec.Exits)+len(rec.Terminated)+len(rec.Replaced)+len(rec.Restore) > 0
}

const checkpointFile = "runtime.json"

func newCheckpoints(podsDir string, log *slog.Logger) *checkpoints {
	return &checkpoints{dir: podsDir, log: log, pods: map[types.UID]*podCheckpoint{}}
}

// get returns the checkpoint of a pod, empty if there is none. It is shared and must
// not be modified.
func (j *checkpoints) get(uid types.UID) *podCheckpoint {
	j.mu.Lock()
	defer j.mu.Unlock()
	if rec, ok := j.pods[uid]; ok {
		return rec
	}
	rec := new(podCheckpoint)
	if path := j.path(uid); path != "" {
		err := checkpoint.Read(path, rec)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			j.log.Warn("Failed to read pod checkpoint, its content is derived from the runtime", "podUID", uid, "err", err)
			rec = new(podCheckpoint)
		}
	}
	j.pods[uid] = rec
	return rec
}

// update changes the checkpoint of a pod. Syncs of one pod do not overlap, so there is
// no concurrent update. If the file cannot be written, the pod runs with the state in
// memory.
func (j *checkpoints) update(pod *v1.Pod, change func(rec *podCheckpoint)) {
	old := j.get(pod.UID)
	rec := &podCheckpoint{
		Attempts: old.Attempts, Pod: old.Pod, Restore: old.Restore,
		Restarts: cloned(old.Restarts), PendingPostStart: cloned(old.PendingPostStart), Actuated: cloned(old.Actuated),
		Exits: cloned(old.Exits), Terminated: cloned(old.Terminated), First: cloned(old.First), Replaced: cloned(old.Replaced),
		Expanded: maps.Clone(old.Expanded),
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
		write := checkpoint.WriteUnsynced
		if old.mustSync() || rec.mustSync() {
			write = checkpoint.Write
		}
		err = write(path, rec)
	}
	if err != nil {
		j.log.Warn("Failed to write pod checkpoint, the state is kept in memory", "pod", pod.Namespace+"/"+pod.Name, "podUID", pod.UID, "err", err)
	}
}

// retain drops the checkpoints of removed pods from memory.
func (j *checkpoints) retain(keep func(types.UID) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.pods, func(uid types.UID, _ *podCheckpoint) bool { return !keep(uid) })
}

// path returns the file of a pod, or "" if the UID, which the runtime may report, is
// not a valid file name.
func (j *checkpoints) path(uid types.UID) string {
	if !isPathElement(string(uid)) {
		return ""
	}
	return filepath.Join(j.dir, string(uid), checkpointFile)
}

// cloned is maps.Clone, except that it returns an empty map for nil.
func cloned[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}
