package device

import (
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/compose"
)

// Pods reports which pods use devices. It must not block.
type Pods interface {
	// Ran reports whether a container of a pod ran when the manager was opened. The
	// allocations of other pods are renewed when they are admitted: the plugin is called
	// again, and other devices are allocated if the previous ones are gone. After a
	// reboot of the node these are all pods.
	Ran(uid types.UID) bool

	// Active reports whether containers of a pod may still run: the devices of other pods
	// are released.
	Active(uid types.UID) bool
}

// Config configures a [Manager].
type Config struct {
	// Dir is the directory with the sockets of the plugins and of the agent. Required.
	// Plugins expect /var/lib/kubelet/device-plugins.
	Dir string

	// Nodes are the NUMA nodes of the machine; 0 if hints are not used.
	Nodes topology.Mask

	// Store stores the allocations. If nil, the file kubelet_internal_checkpoint in Dir
	// is used.
	Store state.Store

	// Adopt are the devices of running containers, for a checkpoint that is lost.
	Adopt []Adopted

	// Pods reports which pods use devices. If nil, all pods ran, and are active until Free
	// or Retain releases them.
	Pods Pods

	// Elsewhere reports whether the node has an extended resource that no plugin offers or
	// has offered: an administrator may add one to the node's status. Containers get it
	// without an allocation. If nil, plugins allocate all extended resources.
	Elsewhere func(resource string) bool

	// Changed is called when the devices of a resource or their health change: the
	// capacity of the node has changed, and waiting pods may be admitted. It is called from
	// the goroutines of plugins, with no lock held, and must not block. If nil, waiting pods
	// are admitted when they are retried.
	Changed func(resource string)

	// RefuseLate rejects a pod whose plugin has not registered, as a kubelet does, and
	// ignores resources that no plugin has ever offered. Otherwise these pods wait.
	RefuseLate bool

	// Timing has the durations. The zero value has the defaults.
	Timing Timing

	// Logger. If nil, messages are discarded.
	Logger *slog.Logger

	Hooks Hooks
}

// Timing has the durations of a [Manager].
type Timing struct {
	// Grace is how long a resource exists after its plugin has disconnected. Zero means 5
	// minutes.
	Grace time.Duration

	// CallTimeout is the deadline of Allocate calls. Zero means 30 seconds. A call delays
	// only the containers that request devices of the same plugin.
	CallTimeout time.Duration
}

// Adopted is a running container with devices.
type Adopted struct {
	PodUID    types.UID
	Container string
	Devices   map[string][]string // IDs by resource
}

// Hooks observe the manager, for metrics. Each may be nil. They are
// called from the goroutines of plugins, with no lock held.
type Hooks struct {
	// Registered is called after each registration.
	Registered func(resource string)

	// Allocated is called after each Allocate call.
	Allocated func(AllocateInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Registered, o.Registered)
		compose.Add(&h.Allocated, o.Allocated)
	}
	return h
}

// AllocateInfo is the result of an Allocate call.
type AllocateInfo struct {
	Resource string
	Devices  []string
	Took     time.Duration
	Error    error
}
