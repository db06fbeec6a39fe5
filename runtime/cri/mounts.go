package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/podenv"
)

// volumesOf returns the volumes of container c's volumeMounts, with sub-paths resolved.
func (s *podSync) volumesOf(ctx context.Context, c *v1.Container, env *podenv.Env) ([]podconfig.Volume, error) {
	var volumes []podconfig.Volume
	for i := range c.VolumeMounts {
		v, err := s.volume(ctx, c, i, env)
		if sub, ok := errors.AsType[subPathError](err); ok {
			return nil, fmt.Errorf("failed to prepare subPath for volumeMount %q of container %q: %w", c.VolumeMounts[i].Name, c.Name, sub.error)
		}
		if err != nil {
			return nil, fmt.Errorf("volumeMount %q of container %q: %w", c.VolumeMounts[i].Name, c.Name, err)
		}
		volumes = append(volumes, v)
	}
	return volumes, nil
}

// A subPathError is an error of a sub-path, not of its volume.
type subPathError struct{ error }

// volume returns the volume of a volumeMount.
func (s *podSync) volume(ctx context.Context, c *v1.Container, index int, env *podenv.Env) (podconfig.Volume, error) {
	m := &c.VolumeMounts[index]
	sub := m.SubPath
	if m.SubPathExpr != "" {
		var err error
		if sub, err = env.ExpandSubPath(m.SubPathExpr); err != nil {
			return podconfig.Volume{}, err
		}
	}
	if got, ok := s.imageVolumes[m.Name]; ok {
		if got.Err != nil {
			return podconfig.Volume{}, imageError(got.Err)
		}
		if sub != "" && !filepath.IsLocal(sub) {
			return podconfig.Volume{}, subPathError{fmt.Errorf("%q is outside of the volume", sub)}
		}
		return podconfig.Volume{Image: got.Image.Spec, ImageSubPath: sub}, nil
	}
	v, err := s.ready(m.Name)
	switch {
	case err != nil:
		return podconfig.Volume{}, err
	case v.Path == "":
		return podconfig.Volume{}, fmt.Errorf("volume %q is a block device: use volumeDevices", m.Name)
	}
	host := v.Path
	if sub != "" {
		host, err = s.subPath(ctx, runtime.SubPath{
			PodUID: s.pod.UID, Volume: m.Name, VolumePath: v.Path, Container: c.Name, Index: index, Path: sub, ReadOnly: m.ReadOnly || v.ReadOnly,
		})
		if err != nil {
			return podconfig.Volume{}, subPathError{err}
		}
	}
	return podconfig.Volume{HostPath: host, ReadOnly: v.ReadOnly, Relabel: v.SELinuxRelabel}, nil
}

// subPath returns the host path of a sub-path.
func (s *podSync) subPath(ctx context.Context, sub runtime.SubPath) (string, error) {
	if s.r.cfg.Providers.Volumes != nil {
		host, err := s.r.cfg.Providers.Volumes.SubPath(ctx, sub)
		if !errors.Is(err, errors.ErrUnsupported) {
			return host, err
		}
	}
	return inVolume(sub.VolumePath, sub.Path)
}

// devicesOf returns the block devices of container c's volumeDevices.
func (s *podSync) devicesOf(c *v1.Container) ([]podconfig.BlockDevice, error) {
	var devices []podconfig.BlockDevice
	for _, d := range c.VolumeDevices {
		v, err := s.ready(d.Name)
		switch {
		case err != nil:
		case v.Device == "":
			err = fmt.Errorf("volume %q is a directory: use volumeMounts", d.Name)
		default:
			if _, err := os.Stat(v.Device); errors.Is(err, fs.ErrNotExist) {
				v.Device = "" // skipped
			}
		}
		if err != nil {
			return nil, fmt.Errorf("volumeDevice %q of container %q: %w", d.Name, c.Name, err)
		}
		devices = append(devices, podconfig.BlockDevice{HostPath: v.Device, ReadOnly: v.ReadOnly})
	}
	return devices, nil
}

// ready returns one of the pod's volumes, or an error if the caller did not mount it.
func (s *podSync) ready(volume string) (runtime.Volume, error) {
	v, ok := s.volumes[volume]
	if !ok || v.Path == "" && v.Device == "" {
		return v, fmt.Errorf("volume %q is not mounted on this node: nothing here provides it", volume)
	}
	return v, nil
}

// inVolume returns the real path of a sub-path of a volume. It creates missing
// directories. Neither ".." nor symbolic links may lead out of the volume. A process that
// writes to the volume before the runtime opens the path can still redirect it;
// Providers.Volumes, with a bind mount, prevents that.
func inVolume(volume, sub string) (string, error) {
	if !filepath.IsLocal(sub) {
		return "", fmt.Errorf("%q is outside of the volume", sub)
	}
	root, err := os.OpenRoot(volume)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if _, err := root.Stat(sub); errors.Is(err, fs.ErrNotExist) {
		mode := fs.FileMode(0o750)
		if info, err := root.Stat("."); err == nil {
			mode = info.Mode().Perm()
		}
		if err := root.MkdirAll(sub, mode); err != nil {
			return "", err
		}
	} else if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(volume)
	if err != nil {
		return "", err
	}
	path, err := filepath.EvalSymlinks(filepath.Join(real, sub))
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(real, path); err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%q is outside of the volume", sub)
	}
	return path, nil
}

// messageFile creates the empty termination message file of an instance and returns its
// path. Each instance has its own file; the attempts to create one instance share it, so
// that they do not fill the disk.
func (s *podSync) messageFile(c *v1.Container, restartCount int32) (string, error) {
	dir := filepath.Join(s.r.podDir(s.pod), messagesDir, c.Name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	path := filepath.Join(dir, fmt.Sprintf("%08x", restartCount))
	// It is not truncated: the instance may already exist and have written to it.
	f, err := untrusted.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return "", err
	}
	return path, errors.Join(f.Close(), os.Chmod(path, 0o666)) // independent of the umask
}
