package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	mount "k8s.io/mount-utils"
	"k8s.io/utils/exec"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
)

// Name is the name of the plugin.
const Name = "kubernetes.io/local-volume"

// A Config configures a [Plugin].
type Config struct {
	// RootDir is the agent's directory, as in volume.Config. Required.
	RootDir string

	// Mounter mounts devices and directories. Required.
	Mounter volume.Mounter

	// Exec runs blkid, mkfs and fsck. If nil, devices cannot be used as file systems.
	Exec exec.Interface
}

// A Plugin is a volume.Plugin.
type Plugin struct{ cfg Config }

// New returns the plugin, or an error if cfg is invalid.
func New(cfg Config) (*Plugin, error) {
	if cfg.Mounter == nil {
		return nil, errors.New("local: Config.Mounter is nil")
	}
	if !filepath.IsAbs(cfg.RootDir) {
		return nil, fmt.Errorf("local: Config.RootDir is %q; it must be an absolute path", cfg.RootDir)
	}
	return &Plugin{cfg}, nil
}

// Name implements volume.Plugin.
func (*Plugin) Name() string { return Name }

// CanSupport implements volume.Plugin.
func (*Plugin) CanSupport(spec *volume.Spec) bool {
	return spec.PV != nil && spec.PV.Spec.Local != nil
}

// SupportsBlock implements volume.BlockMapper.
func (*Plugin) SupportsBlock() bool { return true }

// SupportsMountOptions implements volume.MountOptioner.
func (*Plugin) SupportsMountOptions() bool { return true }

// SharedName implements volume.Stager: all pods of the node have the one volume.
func (*Plugin) SharedName(spec *volume.Spec) (string, error) { return spec.PV.Name, nil }

// check validates the path of a volume.
func check(spec *volume.Spec) (path string, device bool, err error) {
	path = spec.PV.Spec.Local.Path
	if slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "..") {
		return "", false, fmt.Errorf("invalid path: %s must not contain '..'", path)
	}
	if !filepath.IsAbs(path) || strings.Contains(path, "\x00") {
		return "", false, fmt.Errorf("invalid path: %q must be an absolute path", path)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, fmt.Errorf("path %q does not exist", path)
	case err != nil:
		return "", false, err
	case info.IsDir():
		if spec.Block {
			return "", false, fmt.Errorf("path %q is a directory, and the volume's volumeMode is Block", path)
		}
		return path, false, nil
	case info.Mode().Type() == fs.ModeDevice:
		return path, true, nil
	}
	return "", false, fmt.Errorf("path %q: only directory and block device are supported", path)
}

// staged returns the directory where a device is mounted on the node.
func (p *Plugin) staged(pv string) string {
	return filepath.Join(volume.Place{RootDir: p.cfg.RootDir, Plugin: Name}.NodeDir(), "mounts", pv)
}

// Stage implements volume.Stager: an unformatted device is formatted, and mounted.
func (p *Plugin) Stage(_ context.Context, req volume.Request) error {
	path, device, err := check(req.Spec)
	if err != nil {
		return volume.Definite(fmt.Errorf("local: %w", err))
	}
	if !device || req.Spec.Block {
		return nil
	}
	if p.cfg.Exec == nil {
		return volume.Definite(fmt.Errorf("local: %s is a block device, and Config.Exec is nil", path))
	}
	dir := p.staged(req.Spec.PV.Name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("local: %w", err)
	}
	if mounted, err := p.cfg.Mounter.IsMountPoint(dir); err != nil || mounted {
		return err
	}
	fstype := "ext4"
	if t := req.Spec.PV.Spec.Local.FSType; t != nil && *t != "" {
		fstype = *t
	}
	var options []string
	if req.Spec.ReadOnly {
		options = append(options, "ro")
	}
	m := mount.SafeFormatAndMount{Interface: p.cfg.Mounter, Exec: p.cfg.Exec}
	if err := m.FormatAndMount(path, dir, fstype, append(options, req.MountOptions...)); err != nil {
		return fmt.Errorf("local: mount %s: %w", path, errors.Join(err, unmount(p.cfg.Mounter, dir)))
	}
	return nil
}

// Unstage implements volume.Stager.
func (p *Plugin) Unstage(ctx context.Context, spec *volume.Spec) error {
	if err := unmount(p.cfg.Mounter, p.staged(spec.PV.Name)); err != nil {
		return fmt.Errorf("local: %w", err)
	}
	return nil
}

// SetUp implements volume.Plugin.
func (p *Plugin) SetUp(ctx context.Context, req volume.Request) (volume.SetUpResult, error) {
	path, device, err := check(req.Spec)
	if err != nil {
		return volume.SetUpResult{}, fmt.Errorf("local: %w", err)
	}
	dir := req.Dir()
	if req.Spec.Block {
		if err := link(path, dir); err != nil {
			return volume.SetUpResult{}, fmt.Errorf("local: %w", err)
		}
		return volume.SetUpResult{Volume: runtime.Volume{Device: dir, ReadOnly: req.Spec.ReadOnly}}, nil
	}
	if device {
		path = p.staged(req.Spec.PV.Name)
	}
	first, err := p.bind(req, path, dir)
	if err == nil && first && !req.Spec.ReadOnly {
		err = req.SetOwnership(ctx, dir, false)
	}
	if err != nil {
		return volume.SetUpResult{}, fmt.Errorf("local: %w", err)
	}
	return volume.SetUpResult{Volume: runtime.Volume{Path: dir, ReadOnly: req.Spec.ReadOnly, SELinuxRelabel: !req.Spec.ReadOnly}}, nil
}

// bind bind-mounts path at dir and reports whether this pod may set the ownership, that is, whether no
// other pod has it mounted.
func (p *Plugin) bind(req volume.Request, path, dir string) (first bool, err error) {
	refs, err := p.cfg.Mounter.GetMountRefs(path)
	if err != nil {
		return false, err
	}
	pods := filepath.Join(req.RootDir, "pods") + string(filepath.Separator)
	refs = slices.DeleteFunc(refs, func(ref string) bool { return ref == dir || !strings.HasPrefix(ref, pods) })
	if gid, ok := groupOf(path); ok && len(refs) > 0 && req.FSGroup != nil && gid != *req.FSGroup {
		req.Warn("AlreadyMountedVolume", fmt.Sprintf("The requested fsGroup is %d, but the volume %s has GID %d. The volume may not be shareable.",
			*req.FSGroup, req.Spec.PV.Name, gid))
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return false, err
	}
	if mounted, err := p.cfg.Mounter.IsMountPoint(dir); err != nil || mounted {
		return len(refs) == 0, err
	}
	options := []string{"bind"}
	if req.Spec.ReadOnly {
		options = append(options, "ro")
	}
	for _, o := range req.MountOptions {
		if !slices.Contains(options, o) {
			options = append(options, o)
		}
	}
	if err := p.cfg.Mounter.Mount(path, dir, "", options); err != nil {
		return false, fmt.Errorf("bind %s: %w", path, errors.Join(err, unmount(p.cfg.Mounter, dir)))
	}
	return len(refs) == 0, nil
}

// link creates the symbolic link to the device of a block volume.
func link(path, at string) error {
	if got, err := os.Readlink(at); err == nil && got == path {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
		return err
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(path, at)
}

// unmount unmounts dir, if it is a mount point, and removes it if it is empty.
func unmount(m volume.Mounter, dir string) error {
	for {
		mounted, err := m.IsMountPoint(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !mounted:
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		if err := m.Unmount(dir); err != nil {
			return err
		}
	}
}

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(_ context.Context, at volume.Place) error {
	var err error
	if at.Block {
		if err = os.Remove(at.Dir()); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else {
		err = unmount(p.cfg.Mounter, at.Dir())
	}
	if err != nil {
		return fmt.Errorf("local: %w", err)
	}
	return nil
}

// ConstructSpec implements volume.Plugin. The directory has the name of the volume; the mount or the
// symbolic link determines the path.
func (p *Plugin) ConstructSpec(at volume.Place) (*volume.Spec, error) {
	path := ""
	if at.Block {
		target, err := os.Readlink(at.Dir())
		if err != nil {
			return nil, fmt.Errorf("local: %w", err)
		}
		path = target
	} else if _, err := os.Lstat(at.Dir()); err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	mode := v1.PersistentVolumeFilesystem
	if at.Block {
		mode = v1.PersistentVolumeBlock
	}
	pv := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{
		VolumeMode:             &mode,
		PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: path}},
	}}
	pv.Name = at.Name
	return &volume.Spec{PV: pv, Block: at.Block}, nil
}

// Stats implements volume.Plugin: the usage of the file system of the volume.
func (*Plugin) Stats(_ context.Context, at volume.Place, _ runtime.Volume) (statsapi.FsStats, error) {
	if at.Block {
		return statsapi.FsStats{}, fmt.Errorf("local: %w", errors.ErrUnsupported)
	}
	usage, err := volume.FSUsage(at.Dir())
	if err != nil {
		return statsapi.FsStats{}, fmt.Errorf("local: %w", err)
	}
	return usage, nil
}
