package stats

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Runtime tells what pods use, and what there is. A runtime.Runtime with
// runtime.StatsProvider and runtime.ImageFSReporter is one.
type Runtime interface {
	PodStats(ctx context.Context) ([]runtime.PodStats, error)
	Pods(ctx context.Context) ([]*runtime.Pod, error)
	ImageFS(ctx context.Context) (images, containers []runtime.FSUsage, err error)
}

// Cgroups tell what cgroups use: host.Tree, cgroups.Tree. fs.ErrNotExist: there is
// no such cgroup.
type Cgroups interface {
	Stats(name cgroups.Name) (cgroups.Stats, error)
}

// containerCgroups are Cgroups that find a container in the pod's cgroup by its ID,
// whatever the runtime calls its cgroup: host.Tree. With others it is called by the
// ID alone, as cgroupfs has it.
type containerCgroups interface {
	ContainerStats(pod cgroups.Name, id string) (cgroups.Stats, error)
}

// A Disk is a file system.
type Disk struct {
	Capacity, Available, Used       uint64 // bytes
	Inodes, InodesFree, InodesInUse uint64
}

// Config configures a [Collector].
type Config struct {
	// NodeName is the node's.
	NodeName string

	// Runtime runs the pods. Nil: there are none.
	Runtime Runtime

	// Cgroups fill in what the runtime does not tell. Nil: nothing does.
	Cgroups Cgroups

	// PodCgroup returns the pod's cgroup, if it has one. Nil: none has.
	PodCgroup func(uid types.UID) (cgroups.Name, bool)

	// System names the cgroups of the node's own parts: "kubelet", "runtime",
	// "misc" and, of all pods, "pods" (st-2). Those that are not there are left
	// out.
	System map[string]cgroups.Name

	// Root is the machine's, os.DirFS("/"): its /proc is read. Nil: nothing is
	// told of the node.
	Root fs.FS

	// NodeDir is a directory on the file system that the node's parts use, where
	// emptyDirs and logs are. Empty: nothing is told of it.
	NodeDir string

	// Disk returns the file system that a path is on. Nil: [Statfs].
	Disk func(path string) (Disk, error)

	// Volumes returns what the volumes of a pod use. It must not block. Nil:
	// nobody knows.
	Volumes func(uid types.UID) []statsapi.VolumeStats

	// Ephemeral reports whether a volume of the pod is counted as ephemeral
	// storage (st-10). Nil: none is.
	Ephemeral func(uid types.UID, volume string) bool

	// LogDir returns where the pod's logs are: a directory with one per
	// container in it. Nil or "": logs are not counted.
	LogDir func(namespace, name string, uid types.UID) string

	// HostsFile returns the pod's /etc/hosts. Nil or "": it is not counted.
	HostsFile func(uid types.UID) string

	// MessagesDir returns the directory that holds, in one directory per container,
	// the files that the pod's containers write their termination messages to. Nil or
	// "": these are not counted.
	MessagesDir func(uid types.UID) string

	// HostNetwork reports whether a pod is in the host's network, whose traffic
	// is not its own (st-12). Nil: none is.
	HostNetwork func(uid types.UID) bool

	// MaxAge is how old the numbers of pods and disks may be. Zero: 10 seconds. A
	// short one makes the runtime work for each reader.
	MaxAge time.Duration

	// FreshAge is how old the numbers of pods may be where fresh ones are asked
	// for. Zero: 1 second.
	FreshAge time.Duration

	// Logger, nil discards.
	Logger *slog.Logger
}

// A Collector makes summaries.
type Collector struct {
	cfg     Config
	ran     runonce.Guard
	started time.Time
	rates   *rates

	// turn is held while pods and disks are collected.
	turn chan struct{}

	// mu guards cached, which is replaced and never changed.
	mu     sync.Mutex
	cached *collected
}

// collected is one pass over everything.
type collected struct {
	at      time.Time
	summary *statsapi.Summary
	disks   disks

	// What failed of it, and of parts.
	err, nodeErr, podsErr error
}

// New returns a Collector for cfg. It reads nothing yet.
func New(cfg Config) (*Collector, error) {
	if cfg.MaxAge < 0 {
		return nil, fmt.Errorf("stats: Config.MaxAge is negative: %v", cfg.MaxAge)
	}
	if cfg.FreshAge < 0 {
		return nil, fmt.Errorf("stats: Config.FreshAge is negative: %v", cfg.FreshAge)
	}
	if cfg.NodeName == "" {
		return nil, errors.New("stats: Config.NodeName is empty")
	}
	if cfg.MaxAge == 0 {
		cfg.MaxAge = 10 * time.Second
	}
	if cfg.FreshAge == 0 {
		cfg.FreshAge = time.Second
	}
	if cfg.Disk == nil {
		cfg.Disk = Statfs
	}
	if cfg.PodCgroup == nil {
		cfg.PodCgroup = func(types.UID) (cgroups.Name, bool) { return nil, false }
	}
	if cfg.Volumes == nil {
		cfg.Volumes = func(types.UID) []statsapi.VolumeStats { return nil }
	}
	if cfg.Ephemeral == nil {
		cfg.Ephemeral = func(types.UID, string) bool { return false }
	}
	if cfg.LogDir == nil {
		cfg.LogDir = func(string, string, types.UID) string { return "" }
	}
	if cfg.HostsFile == nil {
		cfg.HostsFile = func(types.UID) string { return "" }
	}
	if cfg.MessagesDir == nil {
		cfg.MessagesDir = func(types.UID) string { return "" }
	}
	if cfg.HostNetwork == nil {
		cfg.HostNetwork = func(types.UID) bool { return false }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Collector{cfg: cfg, started: time.Now(), rates: newRates(), turn: make(chan struct{}, 1)}, nil
}
