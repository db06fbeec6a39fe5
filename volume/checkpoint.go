package volume

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkpointsName is the directory of the checkpoints in the plugin directories of a pod and of the
// node. A kubelet that replaces this agent ignores it, and removes it with the pod.
const checkpointsName = "kubeparts.io~volumes"

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

func checkpointsDir(podDir string) string { return filepath.Join(podDir, "plugins", checkpointsName) }

func (m *Manager) deviceCheckpointsDir() string {
	return filepath.Join(m.cfg.RootDir, "plugins", checkpointsName)
}

func checkpointName(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:16]) + ".json"
}

func checkpointPath(at Place) string {
	return filepath.Join(checkpointsDir(at.PodDir()), checkpointName(fmt.Sprintf("%s/%s/%t", at.Plugin, at.Name, at.Block)))
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

// writeCheckpoint replaces a file atomically.
func writeCheckpoint(path string, r volumeCheckpoint) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("volume: write checkpoint: %w", err)
	}
	write := func() error {
		if err := os.WriteFile(path+".tmp", data, 0o600); err != nil {
			return err
		}
		return os.Rename(path+".tmp", path)
	}
	err = write()
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o750); err == nil {
			err = write()
		}
	}
	if err != nil {
		return fmt.Errorf("volume: write checkpoint: %w", err)
	}
	return nil
}

// readCheckpoints returns the checkpoints in a directory and an error for each one that cannot be read.
func readCheckpoints(dir string) (list []volumeCheckpoint, errs []error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, []error{fmt.Errorf("volume: read checkpoints: %w", err)}
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !strings.HasSuffix(path, ".json") {
			_ = os.Remove(path) // incomplete
			continue
		}
		r, err := readCheckpoint(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("volume: read checkpoint %s: %w", path, err))
			continue
		}
		list = append(list, r)
	}
	return list, errs
}

func readCheckpoint(path string) (volumeCheckpoint, error) {
	var r volumeCheckpoint
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, err
	}
	switch {
	case r.Version != checkpointVersion:
		return r, fmt.Errorf("unknown version %d", r.Version)
	case r.Spec == nil:
		return r, errors.New("no spec")
	}
	return r, nil
}
