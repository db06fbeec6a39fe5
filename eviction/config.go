package eviction

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Config configures a [Manager].
type Config struct {
	// Policy is the operator's configuration. The zero value enforces only the
	// ephemeral-storage limits of pods.
	Policy Policy

	// Stats measures the node and its pods.
	Stats StatsSource

	// Pods returns the pods that may have running containers. Required. A pod without
	// running containers, even one whose volumes cannot be cleaned up, must not be
	// returned: it would be evicted repeatedly in place of others. The pods are not
	// modified.
	Pods func() []*v1.Pod

	// Kill terminates a pod and returns when none of its containers runs. Required. If it
	// returns an error, the next pod is evicted in its place, and this one is not retried
	// for Policy.KillBackoff. Kill must bound its duration: the kubelet allows ten seconds,
	// or one and a half times the grace period if that is longer.
	Kill func(ctx context.Context, e Eviction) error

	// Cleaned reports whether the resources of an evicted pod have been released. It is
	// called once per second, for at most 30 seconds, before the next pass. If nil, the
	// next pass starts a second after the eviction.
	Cleaned func(pod *v1.Pod) bool

	// ReclaimContainers and ReclaimImages free disk space before pods are evicted. The first
	// removes terminated containers: the kubelet applies its ordinary garbage collection
	// policy and also removes all containers of evicted pods. The second removes the images
	// that no pod uses. The pass waits for them, so they must bound their duration. A nil
	// step is omitted.
	ReclaimContainers, ReclaimImages func(ctx context.Context) error

	// Node is the object of the node's events.
	Node v1.ObjectReference

	// Record records an event. It must not block. If nil, events are dropped.
	Record func(runtime.Event)

	// Period is the interval between passes that evict no pod. Zero means 10 seconds.
	Period time.Duration

	// Logger receives the log. If nil, nothing is logged.
	Logger *slog.Logger

	// Hooks are called by the Manager.
	Hooks Hooks
}

// A StatsSource measures a node and its pods.
type StatsSource struct {
	// Summary measures usage. Required. The values of the node, and with pods set those of
	// its pods, must not come from a cache. Without pods set the summary needs no pods: a
	// pass needs them only if a threshold that requires action is met, or if a pod has a
	// limit of its local storage. Signals that the summary lacks are not evaluated. Of a
	// pod it requires PodRef.UID, and for the ranking Memory.WorkingSetBytes of the pod or
	// of its containers, ProcessStats.ProcessCount, and UsedBytes and InodesUsed of
	// Containers[].Rootfs, Containers[].Logs and VolumeStats[]; what is missing counts as
	// zero, and [Candidate].Unmeasured reports it. A
	// summary with an error is incomplete: signals it lacks are not evaluated, and pods it
	// lacks are not evicted. Calls do not overlap. A call that has not returned 5 seconds
	// after its context was canceled is abandoned, and all passes fail until it returns.
	Summary func(ctx context.Context, pods bool) (*statsapi.Summary, error)

	// Timeout limits each call of Summary, Memory and Layout. With a short timeout a slow
	// node is not measured and pods are not evicted; with a long one a call that hangs
	// delays eviction. Zero means 2 minutes.
	Timeout time.Duration

	// Layout returns which file systems the node has. It is called until it has succeeded
	// once; while it fails, disk thresholds and storage limits are not evaluated, and the
	// passes return its error. If nil, file systems of equal capacity and number of inodes
	// are taken to be the same one.
	Layout func(ctx context.Context) (Layout, error)

	// Memory measures memory.available. If nil, it is the capacity less the working set of
	// the summary. [MemAvailable] and [CgroupMemory] return alternatives.
	Memory func(ctx context.Context) (MemoryStats, error)

	// MachineMemory is the memory of the node in bytes; a larger working set is rejected as
	// impossible. Zero disables the check.
	MachineMemory int64

	// ImageBytes returns the size of a pod's images in bytes. It is called only where
	// images have a file system of their own. If nil, the size counts as zero.
	ImageBytes func(ctx context.Context, pod *v1.Pod) int64

	// Notifiers trigger a pass as soon as memory runs low. The keys are MemoryAvailable and
	// AllocatableMemoryAvailable. Without one, the next periodic pass detects it.
	Notifiers map[Signal]Notifier
}

const (
	defaultPeriod      = 10 * time.Second
	defaultKillBackoff = time.Minute
	defaultTimeout     = 2 * time.Minute // the kubelet's for requests to the runtime
)

// check returns an error that names every missing or invalid field.
func (c *Config) check() error {
	var errs []error
	if c.Stats.Summary == nil {
		errs = append(errs, errors.New("Config.Stats.Summary is nil"))
	}
	if c.Pods == nil {
		errs = append(errs, errors.New("Config.Pods is nil"))
	}
	if c.Kill == nil {
		errs = append(errs, errors.New("Config.Kill is nil"))
	}
	if c.Period < 0 || c.Stats.Timeout < 0 {
		errs = append(errs, fmt.Errorf("negative duration: Period %v, Stats.Timeout %v", c.Period, c.Stats.Timeout))
	}
	return errors.Join(append(errs, c.Policy.check())...)
}

func (c *Config) setDefaults() {
	if c.Record == nil {
		c.Record = func(runtime.Event) {}
	}
	if c.Period == 0 {
		c.Period = defaultPeriod
	}
	if c.Stats.Timeout == 0 {
		c.Stats.Timeout = defaultTimeout
	}
	if c.Policy.KillBackoff == 0 {
		c.Policy.KillBackoff = defaultKillBackoff
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Hooks.setDefaults()
}
