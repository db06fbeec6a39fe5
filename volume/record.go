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

// recordsName is the directory of the records, among those that plugins keep for
// a pod and for the node: a kubelet that takes over the machine leaves them
// alone, and removes them with the pod.
const recordsName = "kubeparts.io~volumes"

// A record is what a later agent is to know of a volume; it is written before
// the volume is mounted (F-45). It is not synced to the disk: after a crash of
// the machine nothing is mounted, and for what lies on the disk the scan will do.
type record struct {
	Version int    `json:"version"`
	Place   Place  `json:"place,omitzero"`
	Pod     string `json:"pod,omitempty"` // for people: namespace/name
	Spec    *Spec  `json:"spec"`

	// Plugin and Device of one that is staged: the device's record has them
	// instead of a Place.
	Plugin string `json:"plugin,omitempty"`
	Device string `json:"device,omitempty"`

	// SELinuxLabel with which it is staged; empty: none.
	SELinuxLabel string `json:"seLinuxLabel,omitempty"`
}

const recordVersion = 1

func recordsDir(podDir string) string { return filepath.Join(podDir, "plugins", recordsName) }

func (m *Manager) devicesDir() string { return filepath.Join(m.cfg.RootDir, "plugins", recordsName) }

func recordName(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:16]) + ".json"
}

func recordFile(at Place) string {
	return filepath.Join(recordsDir(at.PodDir()), recordName(fmt.Sprintf("%s/%s/%t", at.Plugin, at.Name, at.Block)))
}

// remember writes the record of a volume that is about to be mounted.
func (m *Manager) remember(req Request) error {
	r := record{Version: recordVersion, Place: req.Place, Spec: lean(req.Spec)}
	if req.Pod != nil {
		r.Pod = req.Pod.Namespace + "/" + req.Pod.Name
	}
	return writeRecord(recordFile(req.Place), r)
}

func (m *Manager) unremember(at Place) error {
	if err := os.Remove(recordFile(at)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("volume: record of %s: %w", at, err)
	}
	return nil
}

// rememberDevice writes the record of a device that is about to be staged.
func (m *Manager) rememberDevice(name, plugin, label string, spec *Spec) error {
	r := record{Version: recordVersion, Plugin: plugin, Device: name, Spec: lean(spec), SELinuxLabel: label}
	return writeRecord(filepath.Join(m.devicesDir(), recordName(name)), r)
}

func (m *Manager) unrememberDevice(name string) error {
	err := os.Remove(filepath.Join(m.devicesDir(), recordName(name)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("volume: record of device %s: %w", name, err)
	}
	return nil
}

// lean returns the spec without what nobody needs of the objects in it.
func lean(spec *Spec) *Spec {
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

// trim drops the one annotation that holds the whole object again.
func trim(annotations map[string]string) map[string]string {
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	return annotations
}

// writeRecord replaces a file so that a reader sees the old or the new one.
func writeRecord(path string, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("volume: record: %w", err)
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
		return fmt.Errorf("volume: record: %w", err)
	}
	return nil
}

// readRecords returns the records in a directory, and what is wrong with those
// that cannot be read.
func readRecords(dir string) (list []record, errs []error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, []error{fmt.Errorf("volume: records: %w", err)}
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !strings.HasSuffix(path, ".json") {
			_ = os.Remove(path) // half written
			continue
		}
		r, err := readRecord(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("volume: record %s: %w", path, err))
			continue
		}
		list = append(list, r)
	}
	return list, errs
}

func readRecord(path string) (record, error) {
	var r record
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, err
	}
	switch {
	case r.Version != recordVersion:
		return r, fmt.Errorf("version %d is not known", r.Version)
	case r.Spec == nil:
		return r, errors.New("there is no spec in it")
	}
	return r, nil
}
