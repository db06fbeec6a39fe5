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

	// Pods returns facts about pods that the runtime does not report.
	Pods PodFacts

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

	// MaxAge is how old the numbers of pods and disks may be. Zero: 10 seconds. A
	// short one makes the runtime work for each reader.
	MaxAge time.Duration

	// FreshAge is how old the numbers of pods may be where fresh ones are asked
	// for. Zero: 1 second.
	FreshAge time.Duration

	// Logger, nil discards.
	Logger *slog.Logger
}

// PodFacts returns facts about pods. The functions must not block.
type PodFacts struct {
	// Cgroup returns the cgroup of the pod; false if it has none. If nil, no pod has one.
	Cgroup func(uid types.UID) (cgroups.Name, bool)

	// Volumes returns the usage of the volumes of the pod. If nil, it is not reported.
	Volumes func(uid types.UID) []statsapi.VolumeStats

	// Ephemeral reports whether a volume of the pod counts as ephemeral storage (rule
	// st-10). If nil, no volume does.
	Ephemeral func(uid types.UID, volume string) bool

	// LogDir returns the directory with the logs of the pod, which contains one directory
	// per container. If it is nil or returns "", logs are not counted.
	LogDir func(namespace, name string, uid types.UID) string

	// HostsFile returns the path of the pod's /etc/hosts. If it is nil or returns "", the
	// file is not counted.
	HostsFile func(uid types.UID) string

	// MessagesDir returns the directory with the termination messages of the pod, which
	// contains one directory per container. If it is nil or returns "", they are not
	// counted.
	MessagesDir func(uid types.UID) string

	// HostNetwork reports whether the pod uses the network of the host, whose traffic is
	// not reported for the pod. If nil, no pod does.
	HostNetwork func(uid types.UID) bool
}

// A Collector collects stats. Safe for concurrent use.
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
	if cfg.Pods.Cgroup == nil {
		cfg.Pods.Cgroup = func(types.UID) (cgroups.Name, bool) { return nil, false }
	}
	if cfg.Pods.Volumes == nil {
		cfg.Pods.Volumes = func(types.UID) []statsapi.VolumeStats { return nil }
	}
	if cfg.Pods.Ephemeral == nil {
		cfg.Pods.Ephemeral = func(types.UID, string) bool { return false }
	}
	if cfg.Pods.LogDir == nil {
		cfg.Pods.LogDir = func(string, string, types.UID) string { return "" }
	}
	if cfg.Pods.HostsFile == nil {
		cfg.Pods.HostsFile = func(types.UID) string { return "" }
	}
	if cfg.Pods.MessagesDir == nil {
		cfg.Pods.MessagesDir = func(types.UID) string { return "" }
	}
	if cfg.Pods.HostNetwork == nil {
		cfg.Pods.HostNetwork = func(types.UID) bool { return false }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Collector{cfg: cfg, started: time.Now(), rates: newRates(), turn: make(chan struct{}, 1)}, nil
}
