package volumetest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	mount "k8s.io/mount-utils"
)

// A Mounter records mounts in memory; files written to a mount point are in the directory. The zero value
// is ready for use. Safe for concurrent use.
type Mounter struct {
	// Fault is called before each mount ("mount") and unmount ("unmount"). If it returns an
	// error, the call returns it and changes nothing. If nil, all calls succeed. It must not be
	// changed while a call is in progress.
	Fault func(act, target string) error

	// mu guards the field below.
	mu     sync.Mutex
	points []mount.MountPoint
}

var _ mount.Interface = (*Mounter)(nil)

// Mount implements mount.Interface.
func (m *Mounter) Mount(source, target, fstype string, options []string) error {
	target = clean(target)
	if _, err := os.Stat(target); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	if m.Fault != nil {
		if err := m.Fault("mount", target); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Contains(options, "remount") {
		i := m.lastLocked(target)
		if i < 0 {
			return fmt.Errorf("mount %s: not a mount point", target)
		}
		m.points[i].Opts = slices.Clone(options)
		return nil
	}
	m.points = append(m.points, mount.MountPoint{Device: source, Path: target, Type: fstype, Opts: slices.Clone(options)})
	return nil
}

// MountSensitive implements mount.Interface.
func (m *Mounter) MountSensitive(source, target, fstype string, options, sensitive []string) error {
	return m.Mount(source, target, fstype, slices.Concat(options, sensitive))
}

// MountSensitiveWithoutSystemd implements mount.Interface.
func (m *Mounter) MountSensitiveWithoutSystemd(source, target, fstype string, options, sensitive []string) error {
	return m.MountSensitive(source, target, fstype, options, sensitive)
}

// MountSensitiveWithoutSystemdWithMountFlags implements mount.Interface.
func (m *Mounter) MountSensitiveWithoutSystemdWithMountFlags(source, target, fstype string, options, sensitive, _ []string) error {
	return m.MountSensitive(source, target, fstype, options, sensitive)
}

// Unmount implements mount.Interface.
func (m *Mounter) Unmount(target string) error {
	target = clean(target)
	if m.Fault != nil {
		if err := m.Fault("unmount", target); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.lastLocked(target)
	if i < 0 {
		return fmt.Errorf("umount: %s: not mounted", target)
	}
	m.points = slices.Delete(m.points, i, i+1)
	return nil
}

// lastLocked returns the index of the last mount at target, or -1.
func (m *Mounter) lastLocked(target string) int {
	for i := len(m.points) - 1; i >= 0; i-- {
		if m.points[i].Path == target {
			return i
		}
	}
	return -1
}

// List implements mount.Interface.
func (m *Mounter) List() ([]mount.MountPoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.points), nil
}

// Below returns the mount points at dir and below it, sorted.
func (m *Mounter) Below(dir string) []string {
	dir = clean(dir)
	points, _ := m.List()
	var below []string
	for _, p := range points {
		if p.Path == dir || strings.HasPrefix(p.Path, dir+string(filepath.Separator)) {
			below = append(below, p.Path)
		}
	}
	slices.SortFunc(below, cmp.Compare[string])
	return below
}

// IsLikelyNotMountPoint implements mount.Interface.
func (m *Mounter) IsLikelyNotMountPoint(file string) (bool, error) {
	is, err := m.IsMountPoint(file)
	return !is, err
}

// CanSafelySkipMountPointCheck implements mount.Interface.
func (m *Mounter) CanSafelySkipMountPointCheck() bool { return false }

// IsMountPoint implements mount.Interface.
func (m *Mounter) IsMountPoint(file string) (bool, error) {
	if _, err := os.Stat(file); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lastLocked(clean(file)) >= 0, nil
}

// GetMountRefs implements mount.Interface: the other mount points of the device
// that is mounted at path.
func (m *Mounter) GetMountRefs(path string) ([]string, error) {
	path = clean(path)
	m.mu.Lock()
	defer m.mu.Unlock()
	source := path
	if i := m.lastLocked(path); i >= 0 {
		source = m.points[i].Device
	}
	var refs []string
	for _, p := range m.points {
		if p.Device == source && p.Path != path {
			refs = append(refs, p.Path)
		}
	}
	return refs, nil
}

// clean returns the path as the kernel lists it.
func clean(path string) string {
	if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(parent, filepath.Base(path))
	}
	return filepath.Clean(path)
}

// ErrFault is an error for Mounter.Fault and Plugin.Fault.
var ErrFault = errors.New("volumetest: injected fault")
