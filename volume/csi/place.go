package csi

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/volume"
)

const (
	dataFile   = "vol_data.json"
	persistent = "Persistent"
	ephemeral  = "Ephemeral"

	maxData = 1 << 20 // bytes of the data file
)

// data is the content of vol_data.json, in the kubelet's format.
type data struct {
	SpecVolID           string `json:"specVolID,omitempty"`
	VolumeHandle        string `json:"volumeHandle,omitempty"`
	DriverName          string `json:"driverName,omitempty"`
	NodeName            string `json:"nodeName,omitempty"`
	AttachmentID        string `json:"attachmentID,omitempty"`
	VolumeLifecycleMode string `json:"volumeLifecycleMode,omitempty"`
	SELinuxMountContext string `json:"seLinuxMountContext,omitempty"`

	// Published is "true" once the driver has published the volume and its files have
	// the pod's group. A kubelet, which reads strings only, ignores it.
	Published string `json:"published,omitempty"`

	// Staged is "true" once NodeStageVolume may have been called, and notStaged in the data
	// of a device that was published without a call. It is empty in data that a kubelet
	// wrote.
	Staged string `json:"staged,omitempty"`
}

// notStaged is the value of data.Staged for a volume for which NodeStageVolume was not called.
const notStaged = "false"

func save(dir string, d data) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	content, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return checkpoint.Replace(filepath.Join(dir, dataFile), content, 0o600)
}

// load reads the data that save wrote. The error is fs.ErrNotExist if there is none.
func load(dir string) (data, error) {
	var d data
	content, err := untrusted.ReadFile(filepath.Join(dir, dataFile), maxData)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(content, &d); err != nil {
		return d, fmt.Errorf("%s: %w", filepath.Join(dir, dataFile), err)
	}
	if d.DriverName == "" || d.VolumeHandle == "" {
		return d, fmt.Errorf("%s names no driver or no volume", filepath.Join(dir, dataFile))
	}
	return d, nil
}

// saveStaged writes the data that shows a call of NodeStageVolume. It keeps what SetUp wrote about a device.
func saveStaged(dir string, spec *volume.Spec) error {
	from := spec.PV.Spec.CSI
	d, err := load(dir)
	if err != nil || d.VolumeHandle != from.VolumeHandle || d.DriverName != from.Driver {
		d = data{VolumeHandle: from.VolumeHandle, DriverName: from.Driver}
	}
	d.Staged = "true"
	return save(dir, d)
}

// maybeStaged reports whether NodeStageVolume may have been called for a volume: the data that is written
// before the call exists, or the staging target does. Data that cannot be read counts as well.
func maybeStaged(target, dataDir string) (bool, error) {
	switch d, err := load(dataDir); {
	case err == nil && d.Staged != notStaged:
		return true, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return true, nil
	}
	switch _, err := os.Lstat(target); {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, err
	}
}

// handleOf returns the driver's handle of a volume. That of an inline volume is derived from the pod and
// the volume.
func handleOf(req *volume.Request) string {
	if req.Spec.PV != nil {
		return req.Spec.PV.Spec.CSI.VolumeHandle
	}
	return inlineHandle(string(req.PodUID), req.Spec.Name())
}

func inlineHandle(uid, name string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(uid+name)))
}

// attachmentName returns the name of the VolumeAttachment of a volume.
func attachmentName(handle, driver, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

// nodeDir returns the directory for files that outlive pods.
func (p *Plugin) nodeDir() string {
	return volume.Place{RootDir: p.cfg.RootDir, Plugin: Name}.NodeDir()
}

// stagingDir returns the staging target and the directory of its data.
func (p *Plugin) stagingDir(spec *volume.Spec) (target, dataDir string) {
	from := spec.PV.Spec.CSI
	if spec.Block {
		dir := filepath.Join(p.nodeDir(), "volumeDevices")
		return filepath.Join(dir, "staging", spec.PV.Name), filepath.Join(dir, spec.PV.Name, "data")
	}
	dir := filepath.Join(p.nodeDir(), from.Driver, fmt.Sprintf("%x", sha256.Sum256([]byte(from.VolumeHandle))))
	return filepath.Join(dir, "globalmount"), dir
}

// stagedAt returns the staging target of a volume that is staged.
func (p *Plugin) stagedAt(req *volume.Request) string {
	spec := req.Spec
	if req.StagedSpec != nil {
		spec = req.StagedSpec
	}
	target, _ := p.stagingDir(spec)
	return target
}

// removeOtherData removes the data that SetUp wrote for other persistent volumes of the same device, which
// no pod uses any more.
func (p *Plugin) removeOtherData(from *v1.CSIPersistentVolumeSource) error {
	devices := filepath.Join(p.nodeDir(), "volumeDevices")
	entries, err := os.ReadDir(devices)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		dir := filepath.Join(devices, e.Name(), "data")
		if d, err := load(dir); err != nil || d.DriverName != from.Driver || d.VolumeHandle != from.VolumeHandle {
			continue
		}
		if err := removeData(dir); err != nil {
			return err
		}
		_ = os.Remove(filepath.Dir(dir)) // as in unstage
	}
	return nil
}

// publishTarget returns the publish target of a volume for a pod and the directory of its data.
func (p *Plugin) publishTarget(at volume.Place) (target, dataDir string) {
	if at.Block {
		dir := filepath.Join(p.nodeDir(), "volumeDevices")
		return filepath.Join(dir, "publish", at.Name, string(at.PodUID)), filepath.Join(dir, at.Name, "data")
	}
	return filepath.Join(at.Dir(), "mount"), at.Dir()
}

// ConstructSpec implements volume.Plugin.
func (p *Plugin) ConstructSpec(at volume.Place) (*volume.Spec, error) {
	_, dir := p.publishTarget(at)
	d, err := load(dir)
	if err != nil {
		return nil, fmt.Errorf("csi: %w", err)
	}
	if d.VolumeLifecycleMode == ephemeral {
		return &volume.Spec{Volume: &v1.Volume{Name: d.SpecVolID, VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: d.DriverName}}}}, nil
	}
	mode := v1.PersistentVolumeFilesystem
	if at.Block {
		mode = v1.PersistentVolumeBlock
	}
	pv := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{
		AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		VolumeMode:  &mode,
		PersistentVolumeSource: v1.PersistentVolumeSource{
			CSI: &v1.CSIPersistentVolumeSource{Driver: d.DriverName, VolumeHandle: d.VolumeHandle},
		},
	}}
	pv.Name = d.SpecVolID
	return &volume.Spec{PV: pv, Block: at.Block}, nil
}

// removeDir removes an empty directory, or the file of a device, unless it is a mount point.
func (p *Plugin) removeDir(path string) error {
	mounted, err := p.cfg.Mounter.IsMountPoint(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case mounted:
		return fmt.Errorf("%s: %w", path, volume.ErrMounted)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeData removes the data, and its directory if it is then empty.
func removeData(dir string) error {
	for _, path := range []string{filepath.Join(dir, dataFile+checkpoint.Temporary), filepath.Join(dir, dataFile), dir} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
