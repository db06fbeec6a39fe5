package runtime

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A FeatureReporter is a Runtime that reports which features it supports. Without it, none is
// taken to be supported.
type FeatureReporter interface {
	// Features queries the runtime. A runtime that does not report a feature is treated as
	// not supporting it.
	Features(ctx context.Context) (Features, error)
}

// Features are the optional features of a runtime. The zero value supports none.
type Features struct {
	// Handlers by name, as in RuntimeClass.handler; "" is the default. Nil if the runtime
	// does not report them.
	Handlers map[string]HandlerFeatures

	// SupplementalGroupsPolicy: the field of a pod is supported, and the users of containers
	// are reported. If false, only Merge is.
	SupplementalGroupsPolicy bool

	// UserNamespacesHostNetwork: a pod may have a user namespace and the host network.
	UserNamespacesHostNetwork bool

	// MountOptions: noexec, nodev and nosuid are supported for mounts of containers.
	MountOptions bool

	// Unreported: the runtime reports no features but those of its handlers, as containerd
	// before 2.0. The node's status has none then.
	Unreported bool
}

// HandlerFeatures are the optional features of one runtime handler.
type HandlerFeatures struct {
	// RecursiveReadOnlyMounts: if false, a mount with recursiveReadOnly Enabled is rejected,
	// and one with IfPossible is not recursively read-only.
	RecursiveReadOnlyMounts bool

	// UserNamespaces: if false, pods with hostUsers: false are rejected.
	UserNamespaces bool
}

// A CgroupDriver manages the cgroups of containers. Empty means that it is unknown and must be
// configured in the agent.
type CgroupDriver string

// The cgroup drivers.
const (
	CgroupDriverSystemd  CgroupDriver = "systemd"
	CgroupDriverCgroupfs CgroupDriver = "cgroupfs"
)

// A CgroupDriverReporter is a Runtime that reports its cgroup driver. Without it the driver is
// unknown.
type CgroupDriverReporter interface {
	// CgroupDriver queries the runtime. If the runtime is too old to report its driver, it
	// returns "" and no error; the configuration of the agent applies then,
	// as in the kubelet.
	CgroupDriver(ctx context.Context) (CgroupDriver, error)
}

// A Checkpointer is a Runtime that writes the memory and files of a running container to an
// archive. Without it, checkpoint requests fail.
type Checkpointer interface {
	// Checkpoint writes an archive to location, an absolute path on the host that must not
	// exist. The container keeps running. The timeout is rounded up to whole seconds; zero
	// means the runtime's default.
	Checkpoint(ctx context.Context, containerID, location string, timeout time.Duration) error
}

// A PodCheckpointer is a Runtime that writes a checkpoint of a running pod, from which containers of another pod can be
// restored (KEP-5823, alpha). Without it, pods have no checkpoints.
type PodCheckpointer interface {
	// CheckpointPod writes the processes and writable files of the pod's regular containers and sidecars, all as of one
	// moment, to location: the absolute path of an existing empty directory on the host, which the caller owns. It
	// contains the memory of the processes, with their secrets: only the caller and the runtime should have access.
	// Volumes, devices, and init and ephemeral containers are not part of a checkpoint.
	//
	// The containers are paused meanwhile, until the deadline of ctx at the latest, and run when it returns, also after
	// an error. Without a deadline the limit is 15 seconds, that of the kubelet. Probes are not suspended: one may fail
	// that runs while the containers are paused.
	//
	// It returns an error that names the pod, without pausing a container, if one of the regular containers and sidecars
	// in pod.Spec does not run, and ErrUnsupported if the runtime has no such checkpoints. After an error the directory is
	// empty. It may be called concurrently with all methods; it fails if a container stops meanwhile.
	CheckpointPod(ctx context.Context, pod *v1.Pod, location string) error
}

// A ResourceUpdater is a Runtime that changes the requests and limits of a running container.
// Without it, a container must be restarted to be resized.
type ResourceUpdater interface {
	// UpdateResources sets the CPU and memory of the container. When it returns nil they
	// apply.
	UpdateResources(ctx context.Context, containerID string, resources v1.ResourceRequirements) error
}
