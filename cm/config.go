package cm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Tree contains the cgroups of pods: host.Tree, or a cgroups.Tree in memory. A
// [Manager] calls it from any goroutine, but never concurrently for the same pod.
type Tree interface {
	// Facts returns constant values.
	Facts() cgroups.Facts

	// Apply creates the cgroup and its ancestors if necessary, and sets the values of r
	// that are not nil.
	Apply(ctx context.Context, name cgroups.Name, r cgroups.Resources) error

	// Read returns the resources of the cgroup; an error that is fs.ErrNotExist if it
	// does not exist or lacks a controller. Children returns the direct children.
	Read(name cgroups.Name) (cgroups.Resources, error)
	Children(name cgroups.Name) ([]cgroups.Name, error)

	// Exists reports whether the cgroup exists; also true if this cannot be determined.
	Exists(name cgroups.Name) bool

	// Stats returns the usage of the cgroup; an error that is fs.ErrNotExist if it does not
	// exist. A memory limit that cannot be set, or is reduced, is compared with it.
	Stats(name cgroups.Name) (cgroups.Stats, error)

	// CheckWritable returns an error that is fs.ErrPermission or cgroups.ErrReadOnly if
	// this process may not change the existing cgroup.
	CheckWritable(name cgroups.Name) error

	// Remove kills the processes in the cgroup and removes it and its descendants. It is
	// not an error if the cgroup does not exist.
	Remove(ctx context.Context, name cgroups.Name) error

	// Processes returns the processes in the cgroup and its descendants. A process of
	// another PID namespace is 0.
	Processes(name cgroups.Name) ([]int, error)

	// Inside reports whether the process is in or below the cgroup at a path in the
	// notation of the driver.
	Inside(path string, pid int) (bool, error)

	// Strays returns the processes directly in the root cgroup, except process 1 and
	// kernel threads.
	Strays() ([]int, error)

	// Move moves processes into the cgroup, which it creates if it does not exist.
	Move(ctx context.Context, name cgroups.Name, pids ...int) error
}

// The keys of Enforcement.Keys.
const (
	enforceNone                       = "none"
	enforcePods                       = "pods"
	enforceSystemReserved             = "system-reserved"
	enforceKubeReserved               = "kube-reserved"
	enforceSystemReservedCompressible = "system-reserved-compressible"
	enforceKubeReservedCompressible   = "kube-reserved-compressible"
)

// Config configures a [Manager].
type Config struct {
	// Tree holds the cgroups. Required.
	Tree Tree

	// Driver determines how cgroups are named for the CRI runtime and in Enforce and
	// Processes. Empty means cgroupfs.
	Driver cgroups.Driver

	// Root is the cgroup that contains kubepods (cgroupRoot). Nil means the root.
	Root cgroups.Name

	// Pods determines which pods have cgroups, and which cgroups may be removed.
	Pods PodCgroups

	// Policy determines the resources of the cgroups of pods.
	Policy Policy

	// Capacity is the capacity of the node: [ReadCapacity], with ephemeral-storage added.
	Capacity v1.ResourceList

	// Reserved is the part of Capacity that is not allocatable to pods.
	Reserved Reserved

	// Enforce determines the limits that are set in addition to those of pods.
	Enforce Enforcement

	// Processes are moved into the cgroups that it names.
	Processes ProcessCgroups

	// Events receives the events of the node.
	Events Events

	// Logger. If nil, messages are discarded.
	Logger *slog.Logger

	// Hooks observe changes of cgroups.
	Hooks Hooks
}

// PodCgroups determines which pods have cgroups, and which cgroups may be removed.
type PodCgroups struct {
	// Flat disables the cgroups of pods and QoS classes (cgroupsPerQOS: false): all pods
	// are directly below Config.Root.
	Flat bool

	// Ledger contains the pods that belong to this node. Cgroups of other pods are never
	// removed. If nil, only pods belong to it that Ensure was called for: cgroups that an
	// earlier agent has left behind remain.
	Ledger Ledger

	// HasVolumes reports whether volumes of a pod may be mounted: volume.Manager. The cgroup of
	// a removed pod with volumes is kept. It must not block. If nil, no pod has volumes.
	HasVolumes func(uid types.UID) bool

	// IgnoreForeign permits processes in cgroups of pods that do not belong to this node:
	// Setup does not return ErrForeign.
	IgnoreForeign bool
}

// An Enforcement determines how node allocatable and reserved resources are enforced
// (enforceNodeAllocatable).
type Enforcement struct {
	// Keys are none, which excludes all others; pods; and for each cgroup below one of
	// system-reserved and system-reserved-compressible, or of kube-reserved and
	// kube-reserved-compressible. A compressible key limits only CPU. Nil means pods.
	Keys []string

	// SystemReservedCgroup and KubeReservedCgroup are the cgroups of system and
	// Kubernetes daemons, in the notation of the driver. Setup fails if one that Keys
	// enforces does not exist or cannot be limited.
	SystemReservedCgroup, KubeReservedCgroup string

	// CPUs are those of kubepods and of the reserved cgroups, with cgroup v2: all CPUs of
	// the machine, unless the CPU manager allocates exclusive ones. Systemd removes the
	// controller cpuset, which containers need, from slices that do not use it. Empty: it
	// is not set.
	CPUs cpuset.CPUSet
}

// ProcessCgroups names the cgroups of processes that are not in pods, in the notation of
// the driver. Setup moves the processes, and Run moves them again if it finds them
// elsewhere. With the driver systemd the cgroups are slices; that of the agent may also be
// a service that the agent already runs in, because only systemd adds processes to
// services. If a name is empty, its processes are not moved. Otherwise Config.Tree must be
// able to move processes, as host.Tree is.
type ProcessCgroups struct {
	Agent  string // of this process (kubeletCgroups)
	System string // of the processes directly in the root cgroup (systemCgroups)
}

// Events receives the events NodeAllocatableEnforced and
// FailedNodeAllocatableEnforcement.
type Events struct {
	// Node is the object of the events.
	Node v1.ObjectReference

	// Record must not block. If nil, events are discarded.
	Record func(runtime.Event)
}

// Hooks observe the manager. They are called synchronously and must not block. Each may
// be nil.
type Hooks struct {
	// Operation is called after each creation, update or removal of a cgroup.
	Operation func(OperationInfo)

	// Repaired is called for each cgroup of a pod whose values another program had
	// changed, after it was corrected.
	Repaired func(name cgroups.Name, changes []cgroups.Change)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Operation, o.Operation)
		compose.Add2(&h.Repaired, o.Repaired)
	}
	return h
}

// An OperationInfo describes one operation on a cgroup.
type OperationInfo struct {
	Type     string // create, update, destroy
	Name     cgroups.Name
	Duration time.Duration
	Err      error
}

// A Manager manages the cgroups of a node. Safe for concurrent use.
type Manager struct {
	cfg   Config
	ran   runonce.Guard
	facts cgroups.Facts
	root  cgroups.Name // contains all pods
	log   *slog.Logger

	// mu guards the fields below.
	mu      sync.Mutex
	pods    map[types.UID]*cgroupState
	adopted map[types.UID][]adopted // cgroups of pods for which Ensure was not called
	demand  classDemand             // the requests of both
	unset   bool                    // limits of kubepods could not be set

	ours     map[types.UID]bool // pods of this node whose cgroups are not removed
	reported []string           // cgroups of other nodes that were logged

	// classes guards the last values of the cgroups of QoS classes and is held while they
	// are written.
	classes  turn
	lastQOS  qosLimits
	qosKnown bool
}

// cgroupState is a pod with a cgroup.
type cgroupState struct {
	name      cgroups.Name
	class     v1.PodQOSClass
	requested podRequest

	// desired are the desired resources of the cgroup: those of the spec, as modified by
	// Resize. busy is held while they are written.
	busy    turn
	desired cgroups.Resources
	checked time.Time // when the cgroup had these, or was corrected; guarded by busy
}

// A turn is a lock whose acquisition a context can cancel.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cm: %w", ctx.Err())
	}
}

func (t turn) give() { <-t }

// New returns a Manager for cfg. It changes no cgroups; see [Manager.Setup].
func New(cfg Config) (*Manager, error) {
	if cfg.Tree == nil {
		return nil, errors.New("cm: Config.Tree is nil")
	}
	if cfg.Driver == "" {
		cfg.Driver = cgroups.Cgroupfs
	}
	if cfg.Enforce.Keys == nil {
		cfg.Enforce.Keys = []string{enforcePods}
	}
	if cfg.Events.Record == nil {
		cfg.Events.Record = func(runtime.Event) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Hooks.Operation == nil {
		cfg.Hooks.Operation = func(OperationInfo) {}
	}
	if cfg.Hooks.Repaired == nil {
		cfg.Hooks.Repaired = func(cgroups.Name, []cgroups.Change) {}
	}
	if _, err := cgroups.ParseDriver(string(cfg.Driver)); err != nil {
		return nil, fmt.Errorf("cm: Config.Driver: %w", err)
	}
	if err := cfg.Root.Check(); err != nil {
		return nil, fmt.Errorf("cm: Config.Root: %w", err)
	}
	for name, percent := range cfg.Policy.QOSReserved {
		if name != v1.ResourceMemory || percent < 0 || percent > 100 {
			return nil, fmt.Errorf("cm: Config.Policy.QOSReserved: %s %d%%: must be 0 to 100%% of memory", name, percent)
		}
	}
	if err := checkEnforce(cfg); err != nil {
		return nil, err
	}
	if err := CheckReserved(cfg.Capacity, cfg.Reserved); err != nil {
		return nil, err
	}
	if err := checkResidents(cfg); err != nil {
		return nil, err
	}
	root := cfg.Root
	if !cfg.Pods.Flat {
		root = root.Child(kubepods)
	}
	return &Manager{cfg: cfg, facts: cfg.Tree.Facts(), root: root, log: cfg.Logger, pods: map[types.UID]*cgroupState{}, adopted: map[types.UID][]adopted{}, ours: map[types.UID]bool{}, classes: newTurn()}, nil
}

// checkEnforce checks cfg.Enforce without reading cgroups.
func checkEnforce(cfg Config) error {
	has := func(key string) bool { return slices.Contains(cfg.Enforce.Keys, key) }
	for _, key := range cfg.Enforce.Keys {
		switch key {
		case enforceNone:
			if len(cfg.Enforce.Keys) > 1 {
				return fmt.Errorf("cm: Config.Enforce: %q excludes other keys: %q", key, cfg.Enforce.Keys)
			}
		case enforcePods:
			if cfg.Pods.Flat {
				return fmt.Errorf("cm: Config.Enforce: %q requires cgroups of pods, which Config.Pods.Flat disables", key)
			}
		case enforceSystemReserved, enforceSystemReservedCompressible:
			if cfg.Enforce.SystemReservedCgroup == "" {
				return fmt.Errorf("cm: Config.Enforce: %q requires Config.Enforce.SystemReservedCgroup", key)
			}
		case enforceKubeReserved, enforceKubeReservedCompressible:
			if cfg.Enforce.KubeReservedCgroup == "" {
				return fmt.Errorf("cm: Config.Enforce: %q requires Config.Enforce.KubeReservedCgroup", key)
			}
		default:
			return fmt.Errorf("cm: Config.Enforce: unknown key %q", key)
		}
	}
	for _, path := range []string{cfg.Enforce.SystemReservedCgroup, cfg.Enforce.KubeReservedCgroup} {
		if path != "" && len(cgroups.ParsePath(path, cfg.Driver)) == 0 {
			return fmt.Errorf("cm: Config.Enforce: %q is not a cgroup that can be limited with the driver %s", path, cfg.Driver)
		}
	}
	if has(enforceSystemReserved) && has(enforceSystemReservedCompressible) || has(enforceKubeReserved) && has(enforceKubeReservedCompressible) {
		return fmt.Errorf("cm: Config.Enforce: %q: a key and its compressible form exclude each other", cfg.Enforce.Keys)
	}
	return nil
}
