package podconfig

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containerMounts returns what is mounted into a container: its volumes in the
// order of the spec, /etc/hosts and the file for its termination message
// (vol-75), then what its devices bring.
func containerMounts(in Input, inst Instance) ([]*runtimeapi.Mount, error) {
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
	if inst.HostsFile != "" && !ownHosts { // pe-14
		mounts = append(mounts, &runtimeapi.Mount{ContainerPath: hostsPath, HostPath: inst.HostsFile, SelinuxRelabel: in.Node.SELinux})
	}
	if inst.MessageFile != "" && c.TerminationMessagePath != "" {
		mounts = append(mounts, &runtimeapi.Mount{
			ContainerPath: AbsolutePath(c.TerminationMessagePath), HostPath: inst.MessageFile, SelinuxRelabel: in.Node.SELinux,
		})
	}
	for _, m := range inst.Mounts {
		mounts = append(mounts, copyMount(m))
	}
	return mounts, nil
}

// MapIDs gives the mounts of a container that has a user namespace of its own the
// mappings of that, so that files belong to the same IDs inside and outside
// (se-20). [Container] does; who adds mounts to its result calls it again. Mounts
// that have mappings keep them.
func MapIDs(config *runtimeapi.ContainerConfig) {
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

// AbsolutePath returns a path in a container as it is sent to a runtime: the API permits
// a mountPath and a terminationMessagePath without a leading slash, and Kubernetes takes
// them from the root of the container. The paths of Windows containers are not changed.
func AbsolutePath(path string) string {
	if goruntime.GOOS == "windows" || strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + path
}

// copyMount returns a mount that may be changed: the given one is another's.
func copyMount(m *runtimeapi.Mount) *runtimeapi.Mount {
	return &runtimeapi.Mount{
		ContainerPath: m.GetContainerPath(), HostPath: m.GetHostPath(), Readonly: m.GetReadonly(), SelinuxRelabel: m.GetSelinuxRelabel(),
		Propagation: m.GetPropagation(), RecursiveReadOnly: m.GetRecursiveReadOnly(),
		Image: m.GetImage(), ImageSubPath: m.GetImageSubPath(), MountOptions: m.GetMountOptions(),
	}
}

// volumeMount returns the mount of one of the pod's volumes (vol-72, vol-73).
func volumeMount(in Input, m *v1.VolumeMount, v Volume) (*runtimeapi.Mount, error) {
	mount := &runtimeapi.Mount{
		ContainerPath: AbsolutePath(m.MountPath), HostPath: v.HostPath, SelinuxRelabel: v.Relabel && in.Node.SELinux,
		Readonly: m.ReadOnly || v.ReadOnly || VolumeReadOnly(in.Pod, m.Name),
	}
	switch {
	case v.Image != nil: // the runtime finds the files, and nobody writes to an image
		mount.HostPath, mount.Image, mount.ImageSubPath = "", v.Image, v.ImageSubPath
		mount.Readonly, mount.SelinuxRelabel = true, false
	case v.HostPath == "":
		return nil, fmt.Errorf("volume %q is not mounted on this node: nothing here provides it", m.Name)
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
			return nil, errors.New("bindMountOptions: a volume that is an image takes none")
		case option != "noexec" && option != "nodev" && option != "nosuid":
			return nil, fmt.Errorf("bindMountOptions: unknown option %q", option)
		}
	}
	mount.MountOptions = m.BindMountOptions
	var err error
	mount.RecursiveReadOnly, err = recursiveReadOnly(in.Handler, m)
	return mount, err
}

// recursiveReadOnly reports whether also what is mounted below the volume is to
// be read-only (vol-73). IfPossible falls back in silence, Enabled must not.
func recursiveReadOnly(h Handler, m *v1.VolumeMount) (bool, error) {
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
		return false, fmt.Errorf("recursiveReadOnly: %s needs readOnly: true", mode)
	case m.MountPropagation != nil && *m.MountPropagation != v1.MountPropagationNone:
		return false, fmt.Errorf("recursiveReadOnly: %s goes with no mountPropagation, not %s", mode, *m.MountPropagation)
	case mode == v1.RecursiveReadOnlyEnabled && !h.RecursiveReadOnly:
		return false, errors.New("recursiveReadOnly: Enabled is not supported by the runtime")
	}
	return h.RecursiveReadOnly, nil
}

// VolumeReadOnly reports whether the pod's volume of that name is one that
// nobody writes to, whatever a volumeMount says.
func VolumeReadOnly(pod *v1.Pod, volume string) bool {
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

// containerDevices returns the block volumes of the container (vol-74), then
// what who manages devices gave to it.
func containerDevices(pod *v1.Pod, inst Instance) ([]*runtimeapi.Device, error) {
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
		if of.ReadOnly || VolumeReadOnly(pod, d.Name) {
			permissions = "r"
		}
		devices = append(devices, &runtimeapi.Device{HostPath: of.HostPath, ContainerPath: d.DevicePath, Permissions: permissions})
	}
	return append(devices, inst.Devices...), nil
}
