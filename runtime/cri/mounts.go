package cri

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/podenv"
)

// mounts returns what is mounted into container c: its volumes in the order of
// the spec, then /etc/hosts and the file for its termination message (vol-75).
func (s *step) mounts(c *v1.Container, env *podenv.Env) ([]*runtimeapi.Mount, error) {
	var mounts []*runtimeapi.Mount
	ownHosts := false
	for _, m := range c.VolumeMounts {
		mount, err := s.volumeMount(m, env)
		if err != nil {
			return nil, fmt.Errorf("volumeMount %q of container %q: %w", m.Name, c.Name, err)
		}
		mounts = append(mounts, mount)
		ownHosts = ownHosts || m.MountPath == "/etc/hosts"
	}
	if !ownHosts && (s.pod.Spec.HostNetwork || len(s.ips) > 0) { // pe-14
		path, err := s.r.writeHosts(s.pod, s.ips)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, &runtimeapi.Mount{ContainerPath: "/etc/hosts", HostPath: path, SelinuxRelabel: true})
	}
	if c.TerminationMessagePath != "" {
		if path, err := s.messageFile(c); err != nil { // no reason not to run (rt-124)
			s.r.log.Warn("no file for a termination message", "pod", s.name(), "uid", s.pod.UID, "container", c.Name, "err", err)
		} else {
			mounts = append(mounts, &runtimeapi.Mount{ContainerPath: c.TerminationMessagePath, HostPath: path, SelinuxRelabel: true})
		}
	}
	return mounts, nil
}

// hostPath returns where one of the pod's volumes is on this machine.
func (s *step) hostPath(volume string) (string, error) {
	host, ok := s.volumes[volume]
	if !ok {
		return "", fmt.Errorf("volume %q is not mounted on this node: nothing here provides it", volume)
	}
	return host, nil
}

// volumeMount returns the mount of one of the pod's volumes (vol-69 … vol-73).
func (s *step) volumeMount(m v1.VolumeMount, env *podenv.Env) (*runtimeapi.Mount, error) {
	host, err := s.hostPath(m.Name)
	if err != nil {
		return nil, err
	}
	sub := m.SubPath
	if m.SubPathExpr != "" {
		if sub, err = expandAll(m.SubPathExpr, env); err != nil {
			return nil, err
		}
	}
	if sub != "" {
		if host, err = inVolume(host, sub); err != nil {
			return nil, fmt.Errorf("failed to prepare subPath: %w", err)
		}
	}
	mount := &runtimeapi.Mount{ContainerPath: m.MountPath, HostPath: host, Readonly: m.ReadOnly || s.readOnly(m.Name)}
	if m.MountPropagation != nil {
		switch *m.MountPropagation {
		case v1.MountPropagationHostToContainer:
			mount.Propagation = runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
		case v1.MountPropagationBidirectional:
			mount.Propagation = runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
		}
	}
	if m.RecursiveReadOnly != nil && *m.RecursiveReadOnly == v1.RecursiveReadOnlyEnabled {
		// IfPossible falls back in silence, this must not (vol-73).
		return nil, errors.New("recursiveReadOnly: Enabled is not supported")
	}
	return mount, nil
}

// readOnly reports whether the volume is one that nobody writes to, whatever
// the mount says.
func (s *step) readOnly(volume string) bool {
	for i := range s.pod.Spec.Volumes {
		if v := &s.pod.Spec.Volumes[i]; v.Name == volume {
			return v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil ||
				v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly ||
				v.CSI != nil && v.CSI.ReadOnly != nil && *v.CSI.ReadOnly ||
				v.NFS != nil && v.NFS.ReadOnly
		}
	}
	return false
}

// devices returns the block volumes of container c (vol-74).
func (s *step) devices(c *v1.Container) ([]*runtimeapi.Device, error) {
	var devices []*runtimeapi.Device
	for _, d := range c.VolumeDevices {
		host, err := s.hostPath(d.Name)
		if err != nil {
			return nil, fmt.Errorf("volumeDevice %q of container %q: %w", d.Name, c.Name, err)
		}
		permissions := "mrw"
		if s.readOnly(d.Name) {
			permissions = "r"
		}
		devices = append(devices, &runtimeapi.Device{HostPath: host, ContainerPath: d.DevicePath, Permissions: permissions})
	}
	return devices, nil
}

// expandAll expands a subPathExpr. In a path, a variable that does not exist
// must not stay as it is (vol-71).
func expandAll(expr string, env *podenv.Env) (string, error) {
	var missing []string
	path := podenv.Expand(expr, func(name string) (string, bool) {
		value, ok := env.Get(name)
		if !ok {
			missing = append(missing, name)
		}
		return value, ok
	})
	if missing != nil {
		return "", fmt.Errorf("subPathExpr %q: no such variable: %s", expr, strings.Join(missing, ", "))
	}
	return path, nil
}

// inVolume returns the real path of a sub-path of a volume, which it makes if
// it is not there. Neither "..", nor a link that a container has put there,
// leads out of the volume. The path is the runtime's to open: who can write to
// the volume between this look and that one can still mislead it; closing that
// gap takes a bind mount, which is the business of who mounts volumes (vol-70).
func inVolume(volume, sub string) (string, error) {
	if !filepath.IsLocal(sub) {
		return "", fmt.Errorf("%q leads out of the volume", sub)
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
		return "", fmt.Errorf("%q leads out of the volume", sub)
	}
	return path, nil
}

// messageFile makes the empty file that a container writes its last words to
// (rt-124). Every instance has its own, so that none shows another's.
func (s *step) messageFile(c *v1.Container) (string, error) {
	dir := filepath.Join(s.r.podDir(s.pod), "containers", c.Name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	var name [4]byte
	_, _ = rand.Read(name[:]) // never fails
	path := filepath.Join(dir, hex.EncodeToString(name[:]))
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		return "", err
	}
	return path, os.Chmod(path, 0o666) // whatever the umask
}
