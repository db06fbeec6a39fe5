package volume

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// deviceCheckpoints is the directory of the checkpoints of staged devices in the plugin directory of
// the node. Those of the volumes of a pod are in the directory of the pod itself, because to make a
// directory takes the file system longer than to write the file. A kubelet that replaces this agent
// ignores both, and removes the latter with the pod.
const deviceCheckpoints = "kubeparts.io~volumes"

// The names of checkpoints begin and end with these.
const checkpointPrefix, checkpointSuffix = "volume-", ".json"

// A volumeCheckpoint describes a volume to a later agent. It is written before the volume is mounted. It
// is not synced to disk: after a crash of the machine nothing is mounted, and a scan of the directories
// suffices.
type volumeCheckpoint struct {
	Version int    `json:"version"`
	Place   Place  `json:"place,omitzero"`
	Pod     string `json:"pod,omitempty"` // namespace/name, for operators
	Spec    *Spec  `json:"spec"`

	// Plugin and Device are set instead of Place in the checkpoint of a staged device.
	Plugin string `json:"plugin,omitempty"`
	Device string `json:"device,omitempty"`

	// SELinuxLabel is the label that the device is staged with; empty if none.
	SELinuxLabel string `json:"seLinuxLabel,omitempty"`
}

const checkpointVersion = 1

func (m *Manager) deviceCheckpointsDir() string {
	return filepath.Join(m.cfg.RootDir, "plugins", deviceCheckpoints)
}

func checkpointName(of string) string {
	sum := sha256.Sum256([]byte(of))
	return checkpointPrefix + hex.EncodeToString(sum[:16]) + checkpointSuffix
}

func checkpointPath(at Place) string {
	return filepath.Join(at.PodDir(), checkpointName(fmt.Sprintf("%s/%s/%t", at.Plugin, at.Name, at.Block)))
}

// writeVolumeCheckpoint writes the checkpoint of a volume that is about to be mounted.
func (m *Manager) writeVolumeCheckpoint(req Request) error {
	r := volumeCheckpoint{Version: checkpointVersion, Place: req.Place, Spec: trimSpec(req.Spec)}
	if req.Pod != nil {
		r.Pod = req.Pod.Namespace + "/" + req.Pod.Name
	}
	return writeCheckpoint(checkpointPath(req.Place), r)
}

func (m *Manager) removeVolumeCheckpoint(at Place) error {
	if err := os.Remove(checkpointPath(at)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("volume: remove checkpoint of %s: %w", at, err)
	}
	return nil
}

// writeDeviceCheckpoint writes the checkpoint of a device that is about to be staged.
func (m *Manager) writeDeviceCheckpoint(name, plugin, label string, spec *Spec) error {
	r := volumeCheckpoint{Version: checkpointVersion, Plugin: plugin, Device: name, Spec: trimSpec(spec), SELinuxLabel: label}
	return writeCheckpoint(filepath.Join(m.deviceCheckpointsDir(), checkpointName(name)), r)
}

func (m *Manager) removeDeviceCheckpoint(name string) error {
	err := os.Remove(filepath.Join(m.deviceCheckpointsDir(), checkpointName(name)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("volume: remove checkpoint of device %s: %w", name, err)
	}
	return nil
}

// trimSpec returns the spec without large metadata that is not needed.
func trimSpec(spec *Spec) *Spec {
	s := *spec
	strip := func(m *metav1.ObjectMeta) { m.ManagedFields, m.Annotations = nil, trim(m.Annotations) }
	if s.Claim != nil {
		s.Claim = s.Claim.DeepCopy()
		strip(&s.Claim.ObjectMeta)
	}
	if s.PV != nil {
		s.PV = s.PV.DeepCopy()
		strip(&s.PV.ObjectMeta)
	}
	return &s
}

// trim deletes the annotation that contains a copy of the object.
func trim(annotations map[string]string) map[string]string {
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	return annotations
}

// writeCheckpoint writes a file, in a directory that it creates if necessary.
func writeCheckpoint(path string, r volumeCheckpoint) error {
	err := checkpoint.WriteUnsynced(path, r)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o750); err == nil {
			err = checkpoint.WriteUnsynced(path, r)
		}
	}
	if err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	return nil
}

// readCheckpoints returns the checkpoints in a directory and an error for each one that cannot be read.
func readCheckpoints(dir string) (list []volumeCheckpoint, errs []error) {
	paths, err := checkpointsIn(dir)
	if err != nil {
		return nil, []error{err}
	}
	for _, path := range paths {
		if strings.HasSuffix(path, checkpoint.Temporary) {
			_ = os.Remove(path) // incomplete
			continue
		}
		r, err := readCheckpoint(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("volume: %w", err))
			continue
		}
		list = append(list, r)
	}
	return list, errs
}

// removeCheckpoints removes the checkpoints in a directory.
func removeCheckpoints(dir string) error {
	paths, err := checkpointsIn(dir)
	errs := []error{err}
	for _, path := range paths {
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}

// checkpointsIn returns the paths of the checkpoints in a directory, which need not exist, and of
// incomplete ones.
func checkpointsIn(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("volume: read checkpoints: %w", err)
	}
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), checkpoint.Temporary); strings.HasPrefix(name, checkpointPrefix) && strings.HasSuffix(name, checkpointSuffix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}

func readCheckpoint(path string) (volumeCheckpoint, error) {
	var r volumeCheckpoint
	if err := checkpoint.Read(path, &r); err != nil {
		return r, err
	}
	switch {
	case r.Version != checkpointVersion:
		return r, fmt.Errorf("%s: unknown version %d", path, r.Version)
	case r.Spec == nil:
		return r, fmt.Errorf("%s: no spec", path)
	}
	return r, nil
}
