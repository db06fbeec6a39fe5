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

// A Mounter remembers what is mounted, and mounts nothing: what is written to a
// mount point goes into the directory that it is. The zero value is ready for
// use, from many goroutines.
type Mounter struct {
	// Fault is asked before each mount ("mount") and unmount ("unmount"); an
	// error is what the call returns, and nothing is changed. Nil: all succeed.
	// Set it before the first use, or while nobody uses the Mounter.
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
			return fmt.Errorf("mount %s: it is no mount point", target)
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

// lastLocked returns where what was mounted last at target is in the list.
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

// GetMountRefs implements mount.Interface: the other places where what is mounted
// at path is mounted.
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

// clean returns the path as the kernel would list it.
func clean(path string) string {
	if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(parent, filepath.Base(path))
	}
	return filepath.Clean(path)
}

// ErrFault is a fault for Mounter.Fault and Plugin.Fault.
var ErrFault = errors.New("volumetest: a fault, as asked for")
