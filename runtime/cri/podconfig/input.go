package podconfig

import (
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// A PodInput is the input for the configurations of a pod's sandbox and containers.
type PodInput struct {
	// Pod has the allocated resources in its spec, not the requested ones. Required.
	Pod *v1.Pod

	// Node describes the machine and its configuration.
	Node Node

	// LogDirectory is the directory of the pod's container logs. Empty means that the
	// runtime writes no logs.
	LogDirectory string

	// CgroupParent is the cgroup of the pod. If empty, the runtime chooses it.
	CgroupParent string

	// Hostname is the result of [SandboxHostname]. Pods in the host network do not get
	// it.
	Hostname string

	// DNS is the resolv.conf of the pod. If nil, the runtime chooses it.
	DNS *runtimeapi.DNSConfig

	// Handler is the runtime handler of the pod's RuntimeClass.
	Handler RuntimeHandler

	// UserNamespace has the ID mappings of a pod with hostUsers: false, which requires
	// them. It is ignored for other pods.
	UserNamespace *runtimeapi.UserNamespace

	// Groups are the supplemental groups of the pod's persistent volumes, which are
	// added to those of its spec.
	Groups []int64

	// ExclusiveCPUs are the names of the containers with exclusive CPUs. These
	// containers have no CPU quota, and neither has their pod, unless other containers of it
	// share resources at pod level: a quota would throttle them on their own CPUs.
	ExclusiveCPUs []string
}

// A RuntimeHandler is a runtime handler and its features. The zero value is the default
// handler without features.
type RuntimeHandler struct {
	// Name is the handler's name in RunPodSandbox. Empty means the default handler.
	Name string

	// UserNamespaces and RecursiveReadOnly report whether the handler supports user
	// namespaces and recursive read-only mounts.
	UserNamespaces    bool
	RecursiveReadOnly bool
}

// A Node is the machine and its configuration, as far as the configurations of
// containers depend on them. The zero value is a machine without known properties, with
// the kubelet's default configuration.
type Node struct {
	// MemoryBytes is the memory of the machine, on which OOM scores and swap limits
	// depend (rules cm-35, cm-42). If zero, burstable containers have the OOM score 999
	// and no swap.
	MemoryBytes int64

	// AllocatableMemory is the memory in bytes that is available to all pods. With
	// MemoryQoS, it is the limit of containers without one. Zero means MemoryBytes.
	AllocatableMemory int64

	// CgroupVersion is 1 or 2. If zero, settings of a single version are omitted.
	CgroupVersion int

	// NoCPUQuota disables CPU limits (the kubelet's cpuCFSQuota: false).
	NoCPUQuota bool

	// CPUPeriod is the period of CPU limits. Zero means 100 ms.
	CPUPeriod time.Duration

	// HugePageSizes are the sizes of huge pages in bytes that the kernel supports. If
	// empty, no huge page limits are set.
	HugePageSizes []int64

	// SingleProcessOOMKill lets the kernel kill a single process of a container instead
	// of all (rule cm-34). With cgroup v1 the kernel always does.
	SingleProcessOOMKill bool

	// MemoryQoS protects and throttles memory. The zero value disables it.
	MemoryQoS MemoryQoS

	// Swap configures swap. With the zero value, no limits are set.
	Swap Swap

	// Kernel is the release of the kernel, "6.1.0-18-amd64"; the safe sysctls depend on
	// it. If empty, only sysctls that are safe on all kernels are allowed.
	Kernel string

	// Security has the security modules of the kernel and the seccomp configuration.
	Security Security
}

// Security is the part of a Node on which security contexts depend.
type Security struct {
	// AppArmor reports whether the kernel enforces AppArmor profiles. If false,
	// [AdmitAppArmor] rejects pods that require one.
	AppArmor bool

	// SELinux reports whether SELinux is enabled. If false, no mount is relabeled.
	SELinux bool

	// SeccompDefault gives containers without a seccomp profile the runtime's default
	// profile. If false, they are unconfined (rule se-2).
	SeccompDefault bool

	// SeccompDir is the directory of localhost seccomp profiles.
	SeccompDir string

	// ThermalThrottleDirs are the existing directories
	// /sys/devices/system/cpu/cpu<N>/thermal_throttle, which are masked in containers
	// (rule se-8).
	ThermalThrottleDirs []string
}

// MemoryQoS configures the memory protection and throttling of cgroup v2 (rules cm-38,
// cm-39).
type MemoryQoS struct {
	// Enabled sets the memory protection and, with a ThrottlingFactor, throttles containers
	// that approach their memory limit.
	Enabled bool

	// ThrottlingFactor is the position of the throttling threshold between request and
	// limit, from 0 to 1. Zero means that containers are not throttled: memory.high is not set.
	ThrottlingFactor float64

	// PageSize is the page size of the kernel in bytes. Zero means 4096.
	PageSize int64

	// Reserve selects the pods whose requested memory is protected.
	Reserve cgroups.Reservation
}

// Swap configures the swap of containers (rules cm-40 to cm-42).
type Swap struct {
	// Controller reports whether the kernel can limit swap. If false, no limits are
	// set.
	Controller bool

	// Limited gives burstable containers a share of Bytes (LimitedSwap); it requires
	// cgroup v2. If false, no container swaps (NoSwap).
	Limited bool

	// Bytes is the swap that is available to pods.
	Bytes int64
}

// A ContainerInput is the input for the configuration of one instance of a container, in
// addition to that of its pod.
type ContainerInput struct {
	// Container is a container of the pod, of any type. Required.
	Container *v1.Container

	// RestartCount is the number of the instance, and of its log file.
	RestartCount int32

	// Image is the runtime's reference to the image.
	Image *runtimeapi.ImageSpec

	// User is the user that the image specifies.
	User User

	// Env are the expanded environment variables, with unique names.
	Env []v1.EnvVar

	// Volumes has one entry for each of the container's volumeMounts, in their order.
	Volumes []Volume

	// BlockDevices has one entry for each of the container's volumeDevices, in their
	// order.
	BlockDevices []BlockDevice

	// HostsFile and MessageFile are the files on the node that are mounted at /etc/hosts
	// and at the terminationMessagePath. Empty means that they are not mounted.
	HostsFile, MessageFile string

	// TargetID is the runtime's ID of an ephemeral container's target container. Empty
	// means none.
	TargetID string

	// Allocated are the resources that resource managers allocated to the container.
	Allocated AllocatedResources
}

// AllocatedResources are what the managers of CPUs, memory, devices and dynamic resources
// allocated to a container.
type AllocatedResources struct {
	Devices    []*runtimeapi.Device
	Mounts     []*runtimeapi.Mount
	CDIDevices []string // fully qualified names

	// Annotations are set on the container. Those of this package take precedence.
	Annotations map[string]string

	// CPUs and MemoryNodes are lists like "0-3,8" to which the container is pinned.
	// Empty means no restriction.
	CPUs, MemoryNodes string
}

// A User is the user that an image specifies. The zero value is the user of an image without
// one: its containers run as root.
type User struct {
	UID  *int64 // if numeric
	Name string // if not numeric
}

// A Volume is the source of a volumeMount.
type Volume struct {
	// HostPath is the path on the node, including sub-paths. If Image is set, it is
	// ignored.
	HostPath string

	// Image is the image whose content is mounted, and ImageSubPath the path in it.
	Image        *runtimeapi.ImageSpec
	ImageSubPath string

	// ReadOnly makes the mount read-only regardless of the volumeMount.
	ReadOnly bool

	// Relabel lets the runtime set the container's SELinux label on the files.
	Relabel bool
}

// A BlockDevice is the source of a volumeDevice.
type BlockDevice struct {
	HostPath string // empty if it does not exist; it is then omitted
	ReadOnly bool
}
