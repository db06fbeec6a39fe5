package podconfig

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containerMounts returns the mounts of a container: its volumes in the order of the spec,
// /etc/hosts, the termination message file, and allocated mounts.
func containerMounts(in PodInput, inst ContainerInput) ([]*runtimeapi.Mount, error) {
	c := inst.Container
	if len(inst.Volumes) != len(c.VolumeMounts) {
		return nil, fmt.Errorf("container %q has %d volumeMounts; %d volumes were given", c.Name, len(c.VolumeMounts), len(inst.Volumes))
	}
	var mounts []*runtimeapi.Mount
	ownHosts := false
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		mount, err := volumeMount(in, m, inst.Volumes[i])
		if err != nil {
			return nil, fmt.Errorf("volumeMount %q of container %q: %w", m.Name, c.Name, err)
		}
		mounts = append(mounts, mount)
		ownHosts = ownHosts || AbsolutePath(m.MountPath) == hostsPath
	}
	if inst.HostsFile != "" && !ownHosts {
		mounts = append(mounts, &runtimeapi.Mount{ContainerPath: hostsPath, HostPath: inst.HostsFile, SelinuxRelabel: in.Node.Security.SELinux})
	}
	if inst.MessageFile != "" && c.TerminationMessagePath != "" {
		mounts = append(mounts, &runtimeapi.Mount{
			ContainerPath: AbsolutePath(c.TerminationMessagePath), HostPath: inst.MessageFile, SelinuxRelabel: in.Node.Security.SELinux,
		})
	}
	for _, m := range inst.Allocated.Mounts {
		mounts = append(mounts, copyMount(m))
	}
	return mounts, nil
}

// AddIDMappings sets the ID mappings of a container's user namespace on its mounts, so that
// files have the same owners inside and outside of it (rule se-20). Mounts that have
// mappings keep them. [Container] calls it; a caller that adds mounts to the result must
// call it again.
func AddIDMappings(config *runtimeapi.ContainerConfig) {
	users := config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions()
	if users.GetMode() != runtimeapi.NamespaceMode_POD {
		return
	}
	for _, m := range config.GetMounts() {
		if m != nil && len(m.UidMappings) == 0 && len(m.GidMappings) == 0 {
			m.UidMappings, m.GidMappings = users.GetUids(), users.GetGids()
		}
	}
}

const hostsPath = "/etc/hosts"

// AbsolutePath returns a path in a container with a leading slash: the API permits a
// mountPath and a terminationMessagePath without one, and they are relative to the root of
// the container. On Windows the path is not changed.
func AbsolutePath(path string) string {
	if goruntime.GOOS == "windows" || strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + path
}

// copyMount returns a copy that the caller may change.
func copyMount(m *runtimeapi.Mount) *runtimeapi.Mount {
	return &runtimeapi.Mount{
		ContainerPath: m.GetContainerPath(), HostPath: m.GetHostPath(), Readonly: m.GetReadonly(), SelinuxRelabel: m.GetSelinuxRelabel(),
		Propagation: m.GetPropagation(), RecursiveReadOnly: m.GetRecursiveReadOnly(),
		Image: m.GetImage(), ImageSubPath: m.GetImageSubPath(), MountOptions: m.GetMountOptions(),
	}
}

// volumeMount returns the mount of one of the pod's volumes.
func volumeMount(in PodInput, m *v1.VolumeMount, v Volume) (*runtimeapi.Mount, error) {
	mount := &runtimeapi.Mount{
		ContainerPath: AbsolutePath(m.MountPath), HostPath: v.HostPath, SelinuxRelabel: v.Relabel && in.Node.Security.SELinux,
		Readonly: m.ReadOnly || v.ReadOnly || volumeReadOnly(in.Pod, m.Name),
	}
	switch {
	case v.Image != nil: // images are always read-only, and the runtime locates their files
		mount.HostPath, mount.Image, mount.ImageSubPath = "", v.Image, v.ImageSubPath
		mount.Readonly, mount.SelinuxRelabel = true, false
	case v.HostPath == "":
		return nil, fmt.Errorf("volume %q is not mounted: no volume plugin provides it", m.Name)
	}
	if m.MountPropagation != nil {
		switch p := *m.MountPropagation; p {
		case v1.MountPropagationHostToContainer:
			mount.Propagation = runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
		case v1.MountPropagationBidirectional:
			mount.Propagation = runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
		case v1.MountPropagationNone, "":
		default:
			return nil, fmt.Errorf("mountPropagation: unknown mode %q", p)
		}
	}
	for _, option := range m.BindMountOptions {
		switch {
		case v.Image != nil:
			return nil, errors.New("bindMountOptions: not supported for image volumes")
		case option != "noexec" && option != "nodev" && option != "nosuid":
			return nil, fmt.Errorf("bindMountOptions: unknown option %q", option)
		}
	}
	mount.MountOptions = m.BindMountOptions
	var err error
	mount.RecursiveReadOnly, err = recursiveReadOnly(in.Handler, m)
	return mount, err
}

// recursiveReadOnly reports whether mounts below the volume are read-only too (rule
// vol-73). Without support in the runtime, IfPossible returns false and Enabled an error.
func recursiveReadOnly(h RuntimeHandler, m *v1.VolumeMount) (bool, error) {
	if m.RecursiveReadOnly == nil {
		return false, nil
	}
	mode := *m.RecursiveReadOnly
	switch mode {
	case v1.RecursiveReadOnlyDisabled:
		return false, nil
	case v1.RecursiveReadOnlyIfPossible, v1.RecursiveReadOnlyEnabled:
	default:
		return false, fmt.Errorf("recursiveReadOnly: unknown mode %q", mode)
	}
	switch {
	case !m.ReadOnly:
		return false, fmt.Errorf("recursiveReadOnly: %s requires readOnly: true", mode)
	case m.MountPropagation != nil && *m.MountPropagation != v1.MountPropagationNone:
		return false, fmt.Errorf("recursiveReadOnly: %s requires mountPropagation None, not %s", mode, *m.MountPropagation)
	case mode == v1.RecursiveReadOnlyEnabled && !h.RecursiveReadOnly:
		return false, errors.New("recursiveReadOnly: Enabled is not supported by the runtime")
	}
	return h.RecursiveReadOnly, nil
}

// volumeReadOnly reports whether the volume is read-only regardless of volumeMounts.
func volumeReadOnly(pod *v1.Pod, volume string) bool {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == volume {
			return v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil || v.Image != nil ||
				v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly ||
				v.CSI != nil && v.CSI.ReadOnly != nil && *v.CSI.ReadOnly ||
				v.NFS != nil && v.NFS.ReadOnly || v.ISCSI != nil && v.ISCSI.ReadOnly || v.FC != nil && v.FC.ReadOnly
		}
	}
	return false
}

// containerDevices returns the block volumes of the container and its allocated devices.
func containerDevices(pod *v1.Pod, inst ContainerInput) ([]*runtimeapi.Device, error) {
	c := inst.Container
	if len(inst.BlockDevices) != len(c.VolumeDevices) {
		return nil, fmt.Errorf("container %q has %d volumeDevices; %d devices were given", c.Name, len(c.VolumeDevices), len(inst.BlockDevices))
	}
	var devices []*runtimeapi.Device
	for i, d := range c.VolumeDevices {
		of := inst.BlockDevices[i]
		if of.HostPath == "" {
			continue
		}
		permissions := "mrw"
		if of.ReadOnly || volumeReadOnly(pod, d.Name) {
			permissions = "r"
		}
		devices = append(devices, &runtimeapi.Device{HostPath: of.HostPath, ContainerPath: d.DevicePath, Permissions: permissions})
	}
	return append(devices, inst.Allocated.Devices...), nil
}
