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

// Cgroups reports the usage of cgroups: host.Tree, cgroups.Tree. Its methods return
// fs.ErrNotExist if there is no such cgroup.
type Cgroups interface {
	Stats(name cgroups.Name) (cgroups.Stats, error)

	// ContainerStats returns the usage of the cgroup of a container, in the cgroup of its pod.
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

	// Pods returns facts about pods that the runtime does not report. If nil, pods have
	// neither cgroups, volumes nor files.
	Pods Pods

	// System are the cgroups of system containers: "kubelet", "runtime", "misc", and
	// "pods" for all pods. Those that do not exist are omitted.
	System map[string]cgroups.Name

	// Root is the root directory of the machine, os.DirFS("/"), whose /proc is read. If nil,
	// pods run elsewhere: the CPU and memory of the node are the sums of its pods, and its CPU
	// time includes terminated pods.
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

// Pods returns facts about pods that the runtime does not report. Its methods must be safe for
// concurrent use and must not block.
type Pods interface {
	// Cgroup returns the cgroup of the pod; false if it has none.
	Cgroup(uid types.UID) (cgroups.Name, bool)

	// HostNetwork reports whether the pod uses the network of the host, whose traffic is
	// not reported for the pod.
	HostNetwork(uid types.UID) bool

	// VolumeStats returns the usage of the volumes of the pod: those that count as ephemeral
	// storage (rule stats-10), and the others. volume.Manager implements it.
	VolumeStats(uid types.UID) (ephemeral, persistent []statsapi.VolumeStats)

	// Paths returns the paths of the files of the pod.
	Paths(namespace, name string, uid types.UID) Paths
}

// Paths are the paths of files of a pod. Those that are empty are not counted.
type Paths struct {
	Logs     string // a directory with a directory of logs for each container
	Hosts    string // the pod's /etc/hosts
	Messages string // a directory with a directory of termination messages for each container
}

// noPods is the default of Config.Pods.
type noPods struct{}

func (noPods) Cgroup(types.UID) (cgroups.Name, bool)               { return nil, false }
func (noPods) HostNetwork(types.UID) bool                          { return false }
func (noPods) VolumeStats(types.UID) (_, _ []statsapi.VolumeStats) { return nil, nil }
func (noPods) Paths(string, string, types.UID) Paths               { return Paths{} }

// A Collector collects stats. Safe for concurrent use.
type Collector struct {
	cfg     Config
	ran     runonce.Guard
	started time.Time
	rates   *rates

	// turn is held while pods and disks are collected. It guards total, disks and the time at
	// which the runtime reported them.
	turn    chan struct{}
	total   total
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
	if cfg.Pods == nil {
		cfg.Pods = noPods{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Collector{cfg: cfg, started: time.Now(), rates: newRates(), turn: make(chan struct{}, 1)}, nil
}
