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

// A Runtime reports pods and their usage. A runtime.Runtime that implements
// runtime.StatsProvider and runtime.ImageFSReporter is one.
type Runtime interface {
	PodStats(ctx context.Context) ([]runtime.PodStats, error)
	Pods(ctx context.Context) ([]*runtime.Pod, error)
	ImageFS(ctx context.Context) (images, containers []runtime.FSUsage, err error)
}

// Cgroups reports the usage of cgroups: host.Tree, cgroups.Tree. Stats returns
// fs.ErrNotExist if there is no such cgroup.
type Cgroups interface {
	Stats(name cgroups.Name) (cgroups.Stats, error)
}

// containerCgroups is implemented by Cgroups that find the cgroup of a container by its
// ID, as host.Tree does. Otherwise the name of the cgroup is the ID, as with cgroupfs.
type containerCgroups interface {
	ContainerStats(pod cgroups.Name, id string) (cgroups.Stats, error)
}

// A Disk is the usage of a file system.
type Disk struct {
	Capacity, Available, Used       uint64 // bytes
	Inodes, InodesFree, InodesInUse uint64
}

// Config configures a [Collector].
type Config struct {
	// NodeName is the name of the node. Required.
	NodeName string

	// Runtime runs the pods. If nil, there are none.
	Runtime Runtime

	// Cgroups supplies values that the runtime does not report. May be nil.
	Cgroups Cgroups

	// Pods returns facts about pods that the runtime does not report.
	Pods PodFacts

	// System are the cgroups of system containers: "kubelet", "runtime", "misc", and
	// "pods" for all pods. Those that do not exist are omitted.
	System map[string]cgroups.Name

	// Root is the root directory of the machine, os.DirFS("/"), whose /proc is read. If
	// nil, the usage of the node is not reported.
	Root fs.FS

	// NodeDir is a directory on the file system with emptyDir volumes and logs. If empty,
	// the file system is not reported.
	NodeDir string

	// Disk returns the usage of the file system of a path. If nil, [Statfs] is used.
	Disk func(path string) (Disk, error)

	// MaxAge is the maximum age of the stats of pods and disks. Zero means 10 seconds.
	// Short ages cause runtime calls for each reader.
	MaxAge time.Duration

	// FreshAge is the maximum age of the stats of pods in a fresh summary. Zero means 1
	// second.
	FreshAge time.Duration

	// Logger. If nil, messages are discarded.
	Logger *slog.Logger
}

// PodFacts returns facts about pods. The functions must not block.
type PodFacts struct {
	// Cgroup returns the cgroup of the pod; false if it has none. If nil, no pod has one.
	Cgroup func(uid types.UID) (cgroups.Name, bool)

	// Volumes returns the usage of the volumes of the pod. If nil, it is not reported.
	Volumes func(uid types.UID) []statsapi.VolumeStats

	// Ephemeral reports whether a volume of the pod counts as ephemeral storage (rule
	// stats-10). If nil, no volume does.
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

	// turn is held while pods and disks are collected. It guards disks and the time at which
	// the runtime reported them.
	turn    chan struct{}
	disks   disks
	disksAt time.Time

	// mu guards cached, which is replaced and never changed, and the readers of cached values.
	mu      sync.Mutex
	cached  *collected
	readers readers
}

// collected is the result of one collection.
type collected struct {
	at      time.Time
	summary *statsapi.Summary
	disks   disks

	// The failures, of all and of parts.
	err, nodeErr, podsErr error
}

// New returns a Collector for cfg. It reads nothing.
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
