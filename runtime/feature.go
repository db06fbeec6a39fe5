package runtime

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A FeatureReporter is a Runtime that tells what it can do. Without it, none of
// the features are there.
type FeatureReporter interface {
	// Features asks the runtime. An old one that says nothing of a feature
	// has not got it.
	Features(ctx context.Context) (Features, error)
}

// Features are what a runtime can do beyond the least of its kind. The zero
// value can do nothing more.
type Features struct {
	// Handlers by name, which a RuntimeClass chooses from; "" is the default.
	// Nil: the runtime does not tell.
	Handlers map[string]HandlerFeatures

	// SupplementalGroupsPolicy of a pod is obeyed, and a container's user is
	// reported. Without it only Merge works.
	SupplementalGroupsPolicy bool

	// UserNamespacesHostNetwork: a pod may have both.
	UserNamespacesHostNetwork bool

	// MountOptions noexec, nodev and nosuid of a container's mounts are obeyed.
	MountOptions bool
}

// HandlerFeatures are what one runtime handler can do.
type HandlerFeatures struct {
	// RecursiveReadOnlyMounts: without it, a mount that must be is refused,
	// and one that may be is read-only at its top.
	RecursiveReadOnlyMounts bool

	// UserNamespaces: without it, pods with hostUsers: false are refused.
	UserNamespaces bool
}

// A CgroupDriver is who lays out the cgroups that containers are in.
type CgroupDriver string

// The cgroup drivers. Unknown: the runtime does not tell, and its
// configuration must be known from elsewhere.
const (
	CgroupDriverUnknown  CgroupDriver = ""
	CgroupDriverSystemd  CgroupDriver = "systemd"
	CgroupDriverCgroupfs CgroupDriver = "cgroupfs"
)

// A CgroupDriverReporter is a Runtime that knows its cgroup driver. Without it
// the driver is unknown.
type CgroupDriverReporter interface {
	// CgroupDriver asks the runtime. One too old to tell is no error: the
	// driver is CgroupDriverUnknown then, and the agent's own configuration
	// counts, as in the kubelet.
	CgroupDriver(ctx context.Context) (CgroupDriver, error)
}

// A Checkpointer is a Runtime that writes the memory and files of a running
// container to an archive. Without it (ErrUnsupported), there is no way to.
type Checkpointer interface {
	// Checkpoint writes an archive at location, an absolute path of the host
	// that does not exist yet. The container goes on running. A timeout of 0
	// is the runtime's own; it is counted in whole seconds, rounded up.
	Checkpoint(ctx context.Context, containerID, location string, timeout time.Duration) error
}

// A ResourceUpdater is a Runtime that changes the requests and limits of a
// running container. Without it (ErrUnsupported), a container must be restarted
// to be resized.
type ResourceUpdater interface {
	// UpdateResources gives the container the CPU and memory of resources.
	// When it returns nil they are in force.
	UpdateResources(ctx context.Context, containerID string, resources v1.ResourceRequirements) error
}
