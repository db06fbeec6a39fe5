package podconfig

import (
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// An Input is what the sandbox and all containers of a pod are made from.
type Input struct {
	// Pod, with the resources that it was given (not those it would like). A
	// nil one is an error.
	Pod *v1.Pod

	// Node is the machine.
	Node Node

	// LogDirectory of the pod's logs (rt-17). Empty: the runtime keeps none.
	LogDirectory string

	// CgroupParent is the pod's cgroup. Empty: the runtime chooses.
	CgroupParent string

	// Hostname as the kernel is to have it, an FQDN if the pod wants that
	// (pe-18, pe-19). Pods of the host's network don't get it (rt-18).
	Hostname string

	// DNS is the pod's resolv.conf. Nil: the runtime's own.
	DNS *runtimeapi.DNSConfig

	// Handler is the runtime handler that the pod's class names.
	Handler Handler

	// UserNamespace has the mappings of a pod with hostUsers: false, which
	// needs them (se-17). Nil for all others.
	UserNamespace *runtimeapi.UserNamespace

	// Groups are further supplemental groups, those of persistent volumes
	// (vol-68).
	Groups []int64

	// ExclusiveCPUs are the names of the containers that have CPUs which no other
	// container may use. They have no CPU quota, and with one of them the pod has
	// none: it would throttle them on their own CPUs.
	ExclusiveCPUs []string
}

// A Handler is a runtime handler. The zero value is the default one, with no
// features.
type Handler struct {
	// Name, as RunPodSandbox takes it. Empty: the default handler.
	Name string

	// UserNamespaces and RecursiveReadOnly tell whether it can do these (se-13,
	// vol-73).
	UserNamespaces    bool
	RecursiveReadOnly bool
}

// A Node is what the configuration of containers depends on of a machine and of
// how it is run. The zero value is a machine of which nothing is known, run with
// the kubelet's defaults.
type Node struct {
	// MemoryBytes of the machine, which oom scores and swap are measured
	// against (cm-35, cm-42). Zero: burstable containers get the score 999, and
	// no swap.
	MemoryBytes int64

	// AllocatableMemory in bytes, what pods may have together: it stands in for
	// a limit in MemoryQoS. Zero: MemoryBytes.
	AllocatableMemory int64

	// CgroupVersion is 1 or 2. Zero: unknown, and what only one of them has is
	// left out.
	CgroupVersion int

	// NoCPUQuota turns limits on CPU off (the kubelet's cpuCFSQuota: false).
	NoCPUQuota bool

	// CPUPeriod over which a limit on CPU is kept. Zero: 100 ms.
	CPUPeriod time.Duration

	// HugePageSizes that the kernel has, in bytes. None: no limits are set on
	// huge pages, those of a container included.
	HugePageSizes []int64

	// SingleProcessOOMKill lets the kernel kill one process of a container
	// where it would kill all of it (cm-34). Cgroup v2; v1 knows no other way.
	SingleProcessOOMKill bool

	// MemoryQoS protects and throttles memory; off by default.
	MemoryQoS MemoryQoS

	// Swap of the machine and who may use it; by default nobody.
	Swap Swap

	// SeccompDefault gives containers without a seccomp profile the runtime's
	// default one. False: they are unconfined (se-2).
	SeccompDefault bool

	// SeccompRoot is the directory of the seccomp profiles on this machine.
	SeccompRoot string

	// Kernel is the release of the kernel, "6.1.0-18-amd64", which decides which
	// sysctls are safe. Empty: those of old kernels.
	Kernel string

	// AppArmor reports that the kernel enforces AppArmor profiles. If false, pods
	// that require one are rejected (se-3).
	AppArmor bool

	// SELinux: it is enabled on the machine. False: no mount is relabelled.
	SELinux bool

	// ThermalThrottle are the directories that show the temperature of each
	// CPU, /sys/devices/system/cpu/cpu<N>/thermal_throttle, as far as they
	// exist: containers don't see them (se-8).
	ThermalThrottle []string
}

// MemoryQoS is what cgroup v2 does for the memory of containers (cm-38, cm-39).
type MemoryQoS struct {
	// Enabled slows containers down that come near to their limit.
	Enabled bool

	// ThrottlingFactor is where between request and limit that begins, 0 to 1.
	// Zero: 0.9.
	ThrottlingFactor float64

	// PageSize of the kernel in bytes. Zero: 4096.
	PageSize int64

	// Reserve protects what was requested. Zero: nothing is.
	Reserve Reservation
}

// A Reservation tells whose requested memory the kernel does not take back.
type Reservation int

// The kubelet's default since 1.36 is ReserveNone; ReserveAll is how it was
// before.
const (
	ReserveNone   Reservation = iota
	ReserveTiered             // memory.min for guaranteed pods, memory.low for burstable ones
	ReserveAll                // memory.min for all
)

// Swap is who may swap how much (cm-40 … cm-42).
type Swap struct {
	// Controller tells whether the kernel can limit swap. False: nothing is
	// set, and containers swap as the machine does.
	Controller bool

	// Limited gives burstable containers a share (LimitedSwap). Needs cgroup
	// v2. False: none swap (NoSwap).
	Limited bool

	// Bytes of swap that pods share.
	Bytes int64
}

// An Instance is what one instance of a container is made from, beside the pod.
type Instance struct {
	// Container of the pod, of any kind. A nil one is an error.
	Container *v1.Container

	// RestartCount of the instance, which numbers it and its log (rt-16).
	RestartCount int32

	// Image as the runtime names it.
	Image *runtimeapi.ImageSpec

	// User is who the image says that it runs as.
	User User

	// Env is the environment: names and values, fully expanded, each name once
	// (rt-87).
	Env []v1.EnvVar

	// Volumes has one entry for each of the container's volumeMounts, in their
	// order.
	Volumes []Volume

	// BlockDevices has one entry for each of its volumeDevices, in their order.
	BlockDevices []BlockDevice

	// HostsFile and MessageFile on this machine are mounted to /etc/hosts and to
	// the terminationMessagePath (pe-14, rt-124). Empty: not mounted.
	HostsFile, MessageFile string

	// TargetID is the runtime's ID of the container whose processes an
	// ephemeral one wants to see (rt-84). Empty: none.
	TargetID string

	// Devices, Mounts, CDIDevices (fully qualified names) and Annotations come
	// from who manages devices and dynamic resources. Annotations of ours win
	// over those (section 4.2).
	Devices     []*runtimeapi.Device
	Mounts      []*runtimeapi.Mount
	CDIDevices  []string
	Annotations map[string]string

	// CPUs and MemoryNodes, as "0-3,8", pin it. Empty: it runs anywhere.
	CPUs, MemoryNodes string
}

// A User is who an image says its containers run as. The zero value is an image
// that says nothing: root (rt-83).
type User struct {
	UID  *int64 // numeric, or nil
	Name string // if not numeric
}

// A Volume is what a volumeMount leads to.
type Volume struct {
	// HostPath on this machine, sub-paths included. Or Image, of a volume whose
	// content is an image, with the sub-path in it.
	HostPath     string
	Image        *runtimeapi.ImageSpec
	ImageSubPath string

	// ReadOnly volumes are mounted so whatever the volumeMount says.
	ReadOnly bool

	// Relabel lets the runtime give the files the container's SELinux label.
	Relabel bool
}

// A BlockDevice is what a volumeDevice leads to (vol-74).
type BlockDevice struct {
	HostPath string // empty: it is not there, and left out
	ReadOnly bool
}
