package eviction

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Config configures a [Manager].
type Config struct {
	// Policy is the operator's configuration. The zero value enforces only the
	// ephemeral-storage limits of pods.
	Policy Policy

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

	// Memory measures memory.available; the Signal of its result is ignored. If nil, it is
	// the capacity less the working set of the summary. [MemAvailable] and [CgroupMemory]
	// return alternatives.
	Memory func(ctx context.Context) (Observation, error)

	// Timeout limits each call of Summary, Memory and Disks.Devices. With a short timeout a
	// slow node is not measured and pods are not evicted; with a long one a call that hangs
	// delays eviction. Zero means 2 minutes.
	Timeout time.Duration

	// Pods are the pods of the node. Required.
	Pods Pods

	// Disks are the file systems of the node. If nil, file systems of equal capacity and
	// number of inodes are taken to be the same one, and no disk space is reclaimed before
	// pods are evicted.
	Disks Disks

	// Notifiers trigger a pass as soon as memory runs low. The keys are MemoryAvailable and
	// AllocatableMemoryAvailable. Without one, the next periodic pass detects it.
	Notifiers map[Signal]Notifier

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

// Pods are the pods of a node.
type Pods interface {
	// Running returns the pods that may have running containers. A pod without running
	// containers, even one whose volumes cannot be cleaned up, must not be returned: it
	// would be evicted repeatedly in place of others. The pods are not modified.
	Running() []*v1.Pod

	// Evict terminates a pod and returns when none of its containers runs. If it returns an
	// error, the next pod is evicted in its place, and this one is not retried for
	// Policy.KillBackoff. It must bound its duration: the kubelet allows ten seconds, or one
	// and a half times the grace period if that is longer. It may be called concurrently for
	// different pods.
	Evict(ctx context.Context, v Victim) error

	// Cleaned reports whether the resources of an evicted pod have been released. It is
	// called once per second, for at most 30 seconds, before the next pass.
	Cleaned(uid types.UID) bool
}

// Disks are the file systems of a node. A pass waits for the methods, so they must bound
// their duration.
type Disks interface {
	// Devices returns the devices of the node's root directory, of images, and of the
	// writable layers of containers, as in [Inputs]. It is called until it has succeeded
	// once; while it fails, disk thresholds and storage limits are not evaluated, and the
	// passes return its error.
	Devices(ctx context.Context) (root, images, layers string, err error)

	// ImageBytes returns the size of a pod's images in bytes. It is called only where images
	// have a file system of their own.
	ImageBytes(ctx context.Context, pod *v1.Pod) int64

	// DeleteUnusedContainers removes terminated containers: the kubelet applies its ordinary
	// garbage collection policy and also removes all containers of evicted pods.
	DeleteUnusedContainers(ctx context.Context) error

	// DeleteUnusedImages removes the images that no pod uses.
	DeleteUnusedImages(ctx context.Context) error
}

const (
	defaultPeriod      = 10 * time.Second
	defaultKillBackoff = time.Minute
	defaultTimeout     = 2 * time.Minute // the kubelet's for requests to the runtime
)

// check returns an error that names every missing or invalid field.
func (c *Config) check() error {
	var errs []error
	if c.Summary == nil {
		errs = append(errs, errors.New("Config.Summary is nil"))
	}
	if c.Pods == nil {
		errs = append(errs, errors.New("Config.Pods is nil"))
	}
	if c.Period < 0 || c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("negative duration: Period %v, Timeout %v", c.Period, c.Timeout))
	}
	return errors.Join(append(errs, c.Policy.Validate())...)
}

func (c *Config) setDefaults() {
	if c.Record == nil {
		c.Record = func(runtime.Event) {}
	}
	if c.Period == 0 {
		c.Period = defaultPeriod
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Policy.KillBackoff == 0 {
		c.Policy.KillBackoff = defaultKillBackoff
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Hooks.setDefaults()
}
