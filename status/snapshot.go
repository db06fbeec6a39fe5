package status

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// A Snapshot is a [Sink] for agents without an API server: a directory with the last status
// of each pod. [Config].Restore takes it from there after a restart of the process, so that a
// terminated pod stays terminated, restart counts continue, the exit codes of removed containers
// are kept, and readiness lasts until a probe has a new result.
//
// Each file is replaced atomically. A terminal status is synced to the disk. Any other may be lost
// by a power failure, after which no container of it runs: restart counts are then those of the
// runtime, and readiness begins with the next probe. A pod has no file before one of its containers
// was created; after a restart of the process its start time is later. Safe for concurrent use.
type Snapshot struct {
	dir string

	mu   sync.Mutex // guards the fields below
	pods map[types.UID]lastStatus
}

// lastStatus is the last status of a pod.
type lastStatus struct {
	status v1.PodStatus
	stored bool // there is a file
}

// snapshot is the content of a file. Namespace and name are informative.
type snapshot struct {
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	UID       types.UID    `json:"uid"`
	Status    v1.PodStatus `json:"status"`
}

const snapshotEnding = ".json"

// OpenSnapshot opens the directory, creates it if necessary, and reads the files in it. broken
// contains an error for each file that cannot be read; its pod has no status. It returns an error
// if the directory cannot be used.
func OpenSnapshot(dir string) (s *Snapshot, broken []error, err error) {
	if dir == "" {
		return nil, nil, errors.New("status: OpenSnapshot: dir is empty")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("status: create the snapshot directory: %w", err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("status: read the snapshot directory: %w", err)
	}
	s = &Snapshot{dir: dir, pods: make(map[types.UID]lastStatus, len(files))}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if strings.HasSuffix(f.Name(), snapshotEnding+checkpoint.Temporary) {
			_ = os.Remove(path) // of an interrupted write; a failure to remove it is harmless
		}
		if filepath.Ext(f.Name()) != snapshotEnding {
			continue // another file
		}
		var r snapshot
		if err := checkpoint.Read(path, &r); err != nil {
			broken = append(broken, fmt.Errorf("status: %w", err))
		} else if snapshotName(r.UID) != f.Name() {
			broken = append(broken, fmt.Errorf("status: %s contains pod %q, whose file name is another", path, r.UID))
		} else {
			s.pods[r.UID] = lastStatus{r.Status, true}
		}
	}
	return s, broken, nil
}

// snapshotName returns the name of a pod's file: its UID, or a hash if that is no file name.
func snapshotName(uid types.UID) string {
	plain := len(uid) > 0 && len(uid) <= 128 && strings.Trim(string(uid), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
	if plain {
		return string(uid) + snapshotEnding
	}
	h := fnv.New128a()
	_, _ = h.Write([]byte(uid))
	return "uid." + hex.EncodeToString(h.Sum(nil)) + snapshotEnding
}

// Status returns the last status of the pod, and whether there is one.
func (s *Snapshot) Status(uid types.UID) (v1.PodStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.pods[uid]
	return *last.status.DeepCopy(), ok
}

// UpdatePodStatus writes the file of the pod.
func (s *Snapshot) UpdatePodStatus(_ context.Context, pod *v1.Pod, status v1.PodStatus) error {
	if s.keep(pod.UID, status) {
		return nil
	}
	r := snapshot{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Status: status}
	write := checkpoint.WriteUnsynced
	if Terminal(status.Phase) {
		write = checkpoint.Write
	}
	if err := write(filepath.Join(s.dir, snapshotName(pod.UID)), r); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[pod.UID] = lastStatus{status, true}
	return nil
}

// keep stores a status that needs no file, in memory only, and reports whether it is one.
func (s *Snapshot) keep(uid types.UID, status v1.PodStatus) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[uid].stored || !neverStarted(status) {
		return false
	}
	s.pods[uid] = lastStatus{status: status}
	return true
}

// neverStarted reports whether no container of the pod was ever created.
func neverStarted(status v1.PodStatus) bool {
	if status.Phase != v1.PodPending {
		return false
	}
	for _, list := range [][]v1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
		for _, c := range list {
			if c.ContainerID != "" || c.RestartCount > 0 || c.State.Waiting == nil || c.LastTerminationState != (v1.ContainerState{}) {
				return false
			}
		}
	}
	return true
}

// DeletePod removes the file of the pod.
func (s *Snapshot) DeletePod(_ context.Context, pod *v1.Pod) error { return s.remove(pod.UID) }

// Retain removes the status of every pod that keep rejects, for example those that were deleted
// while the process did not run. It should be called when all sources have synced. keep may call
// methods of s. It implements podworker.Retainer.
func (s *Snapshot) Retain(_ context.Context, keep func(uid types.UID) bool) error {
	s.mu.Lock()
	gone := slices.Collect(maps.Keys(s.pods))
	s.mu.Unlock()
	gone = slices.DeleteFunc(gone, keep)
	var errs []error
	for _, uid := range gone {
		errs = append(errs, s.remove(uid))
	}
	return errors.Join(errs...)
}

func (s *Snapshot) remove(uid types.UID) error {
	if err := os.Remove(filepath.Join(s.dir, snapshotName(uid))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("status: remove a snapshot: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, uid)
	return nil
}
