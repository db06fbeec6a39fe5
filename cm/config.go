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

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Tree is the cgroups that pods live in: host.Tree, or a cgroups.Tree in memory.
// A [Manager] calls it from any goroutine, never twice at a time for one pod.
type Tree interface {
	// Facts don't change.
	Facts() cgroups.Facts

	// Apply makes the cgroup, and those above it, where they are not there, and
	// sets what is not nil of r.
	Apply(ctx context.Context, name cgroups.Name, r cgroups.Resources) error

	// Read returns what the cgroup has; one that is not there, or not whole, Is
	// fs.ErrNotExist. Children are the cgroups right below.
	Read(name cgroups.Name) (cgroups.Resources, error)
	Children(name cgroups.Name) ([]cgroups.Name, error)

	// Remove ends what runs in the cgroup, and removes it with all below it. One
	// that is not there is no error.
	Remove(ctx context.Context, name cgroups.Name) error
}

// A usageReader is a Tree that tells what cgroups use. Without it a limit that is
// refused is not tried again at what is in use (cm-19), and memory is not looked at
// before a pod's limit shrinks (cm-43).
type usageReader interface {
	Stats(name cgroups.Name) (cgroups.Stats, error)
}

// The keys of [Config].Enforce (cm-25).
const (
	EnforceNone                       = "none"
	EnforcePods                       = "pods"
	EnforceSystemReserved             = "system-reserved"
	EnforceKubeReserved               = "kube-reserved"
	EnforceSystemReservedCompressible = "system-reserved-compressible"
	EnforceKubeReservedCompressible   = "kube-reserved-compressible"
)

// Config configures a [Manager].
type Config struct {
	// Tree holds the cgroups. Required.
	Tree Tree

	// Driver spells names for the CRI runtime, and those of SystemReservedCgroup
	// and KubeReservedCgroup. Empty: cgroupfs.
	Driver cgroups.Driver

	// Root is the cgroup that kubepods is in (cgroupRoot, cm-6). Nil: the root.
	Root cgroups.Name

	// Flat turns the cgroups of pods and classes off (cgroupsPerQOS: false): all
	// pods are right below Root (cm-21).
	Flat bool

	// Policy makes cgroups of what pods ask for.
	Policy Policy

	// ExclusiveCPUs reports whether a container of the pod has CPUs which no other
	// container may use: the pod's cgroup then has no CPU quota. It must not block.
	// If nil, no container has.
	ExclusiveCPUs func(pod *v1.Pod) bool

	// Capacity of the node: [ReadCapacity], with ephemeral-storage added.
	Capacity v1.ResourceList

	// Reserved is what pods can't have of it.
	Reserved Reserved

	// Enforce says what limits are set beside those of pods; see the constants.
	// Nil: pods. The cgroups of what is reserved have to exist (cm-25).
	Enforce                                  []string
	SystemReservedCgroup, KubeReservedCgroup string

	// AgentCgroup and SystemCgroup are what this process, and all that are right in
	// the root of all cgroups, are moved into, by Setup and whenever Run finds them
	// elsewhere (kubeletCgroups, systemCgroups; cm-46). With the driver systemd they
	// are slices; the agent's may be a service too, which it has to be in already:
	// only systemd puts processes there. Empty: nobody is moved. They need a Tree that
	// can move processes, as host.Tree can.
	AgentCgroup, SystemCgroup string

	// Node is whom events are about.
	Node v1.ObjectReference

	// Record takes events: NodeAllocatableEnforced,
	// FailedNodeAllocatableEnforcement. It must not block. Nil: nobody reads them.
	Record func(runtime.Event)

	// Period of the passes that Run makes. Zero: 1 minute (cm-18).
	Period time.Duration

	// Compat brings back ways of the kubelet.
	Compat Compat

	// Logger, nil discards.
	Logger *slog.Logger

	// Hooks observe; see there.
	Hooks Hooks
}

// Compat are ways of the kubelet that are not copied.
type Compat struct {
	// KeepExisting leaves a pod's cgroup that is there as it is (nq-10, cm-12).
	// False: it is put right, and again when somebody changes it (F-57).
	KeepExisting bool

	// IgnoreSetErrors runs pods whose limits could not be set (nq-10, cm-10).
	// False: they don't start.
	IgnoreSetErrors bool
}

// Hooks are called as things happen, on the goroutine they happen on; they must
// not block. Any may be nil.
type Hooks struct {
	// Operation is called after each change of a cgroup
	// (kubelet_cgroup_manager_duration_seconds, cm-11).
	Operation func(OperationInfo)

	// Repaired is called for each cgroup in which somebody else had changed
	// something (cgroup_drift_repaired_total, F-57).
	Repaired func(name cgroups.Name, changes []cgroups.Change)
}

// An OperationInfo is about one change of a cgroup.
type OperationInfo struct {
	Type     string // create, update, destroy
	Name     cgroups.Name
	Duration time.Duration
	Err      error
}

// A Manager keeps the cgroups of a node. Its methods may be called from any
// goroutine.
type Manager struct {
	cfg   Config
	ran   runonce.Guard
	facts cgroups.Facts
	root  cgroups.Name // that of all pods
	log   *slog.Logger

	// mu guards the fields below.
	mu      sync.Mutex
	pods    map[types.UID]*held
	adopted map[types.UID][]adopted // of pods that are not in pods
	demand  Demand                  // of both
	unset   bool                    // limits of kubepods or of what is reserved could not be set

	// classes guards what the classes' cgroups were last given, and is held
	// while that is written.
	classes  turn
	lastQOS  QOSResources
	qosKnown bool
}

// held is a pod that has a cgroup.
type held struct {
	name      cgroups.Name
	class     v1.PodQOSClass
	requested Requested

	// wanted is what its cgroup is to have: what its spec said when it was made,
	// and what resizes have changed since. busy is held while that is written.
	busy   turn
	wanted cgroups.Resources
}

// A turn is a lock that may be held for long, and waited for as long as ctx says.
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

// New returns a Manager for cfg. It changes nothing; see [Manager.Setup].
func New(cfg Config) (*Manager, error) {
	if cfg.Tree == nil {
		return nil, errors.New("cm: Config.Tree is nil")
	}
	if cfg.Driver == "" {
		cfg.Driver = cgroups.Cgroupfs
	}
	if cfg.Enforce == nil {
		cfg.Enforce = []string{EnforcePods}
	}
	if cfg.Period == 0 {
		cfg.Period = time.Minute
	}
	if cfg.ExclusiveCPUs == nil {
		cfg.ExclusiveCPUs = func(*v1.Pod) bool { return false }
	}
	if cfg.Record == nil {
		cfg.Record = func(runtime.Event) {}
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
	if cfg.Period < 0 {
		return nil, fmt.Errorf("cm: Config.Period is negative: %v", cfg.Period)
	}
	for name, percent := range cfg.Policy.QOSReserved {
		if name != v1.ResourceMemory || percent < 0 || percent > 100 {
			return nil, fmt.Errorf("cm: Config.Policy.QOSReserved: %s %d%%: want 0 to 100%% of memory", name, percent)
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
	if !cfg.Flat {
		root = root.Child(kubepods)
	}
	return &Manager{cfg: cfg, facts: cfg.Tree.Facts(), root: root, log: cfg.Logger, pods: map[types.UID]*held{}, adopted: map[types.UID][]adopted{}, classes: newTurn()}, nil
}

// checkEnforce checks the keys alone (cm-25).
func checkEnforce(cfg Config) error {
	has := func(key string) bool { return slices.Contains(cfg.Enforce, key) }
	for _, key := range cfg.Enforce {
		switch key {
		case EnforceNone:
			if len(cfg.Enforce) > 1 {
				return fmt.Errorf("cm: Config.Enforce: %q goes with no other key, there are %q", key, cfg.Enforce)
			}
		case EnforcePods:
			if cfg.Flat {
				return fmt.Errorf("cm: Config.Enforce: %q needs cgroups of pods, which Config.Flat turns off", key)
			}
		case EnforceSystemReserved, EnforceSystemReservedCompressible:
			if cfg.SystemReservedCgroup == "" {
				return fmt.Errorf("cm: Config.Enforce: %q needs Config.SystemReservedCgroup", key)
			}
		case EnforceKubeReserved, EnforceKubeReservedCompressible:
			if cfg.KubeReservedCgroup == "" {
				return fmt.Errorf("cm: Config.Enforce: %q needs Config.KubeReservedCgroup", key)
			}
		default:
			return fmt.Errorf("cm: Config.Enforce: unknown key %q", key)
		}
	}
	for _, path := range []string{cfg.SystemReservedCgroup, cfg.KubeReservedCgroup} {
		if path != "" && len(cgroups.ParsePath(path, cfg.Driver)) == 0 {
			return fmt.Errorf("cm: Config.Enforce: %q is no cgroup that can be limited with the driver %s", path, cfg.Driver)
		}
	}
	if has(EnforceSystemReserved) && has(EnforceSystemReservedCompressible) || has(EnforceKubeReserved) && has(EnforceKubeReservedCompressible) {
		return fmt.Errorf("cm: Config.Enforce: %q: a key and its compressible form exclude each other", cfg.Enforce)
	}
	return nil
}
