package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Reporter computes and delivers the statuses of pods. status.Manager implements it. Its
// methods must not block.
type Reporter interface {
	// Report computes and returns the pod's status. observed is the status that
	// the runtime reported, nil if there is none; starts has the reasons why containers do not start, by
	// name; termination is the agent's own reason to terminate the pod.
	Report(pod *v1.Pod, observed *runtime.PodStatus, starts map[string]v1.ContainerStateWaiting, termination runtime.Termination) v1.PodStatus

	// Finish reports that the pod has terminated and was cleaned up, so its object may be
	// deleted.
	Finish(pod *v1.Pod)

	podworker.Retainer

	// Reconcile is called with pods whose object has another status than before; see
	// [podworker.Loop.ReconcilePods].
	Reconcile(pod *v1.Pod)
}

// Volumes mounts and unmounts the volumes of pods. volume.Manager implements it. It may implement
// [BlockedReporter].
type Volumes interface {
	// Mount blocks until every volume that a container of the pod uses is mounted, and
	// returns the volumes by name. An error that wraps a *runtime.Rejection, such as
	// "VolumeAttachmentLimitExceeded", fails the pod.
	Mount(ctx context.Context, pod *v1.Pod) (map[string]runtime.Volume, error)

	// Unmount blocks until all volumes of the pod are unmounted.
	Unmount(ctx context.Context, pod *v1.Pod) error
}

// A BlockedReporter is [Volumes] that report why Mount or Unmount is in progress. Without it,
// [podworker.Workers.Snapshot] contains only the step.
type BlockedReporter interface {
	// Blocked returns why Mount or Unmount of the pod has not returned, and when the operation is
	// retried. It must not block.
	Blocked(uid types.UID) (cause string, retryAt time.Time)
}

// Probes runs the probes of containers. Its methods must not block.
type Probes interface {
	// Add starts the probes of the pod. It is idempotent.
	Add(pod *v1.Pod)

	// StopLiveness stops the liveness and startup probes, which could restart a
	// container. Readiness probes continue.
	StopLiveness(pod *v1.Pod)

	// Results returns the results of the liveness and startup probes of the pod.
	Results(pod *v1.Pod) *runtime.ProbeResults

	// Remove stops all probes of the pod.
	Remove(uid types.UID)
}

// Objects caches the objects that pods refer to, such as Secrets and ConfigMaps. Its methods
// must not block.
type Objects interface {
	// Register caches the objects that the pod refers to. It is called in each sync
	// before they are used; another call replaces the references of the pod.
	Register(pod *v1.Pod)

	// Unregister releases the objects of a pod that has terminated. It has no effect if the
	// pod is not registered.
	Unregister(uid types.UID)

	podworker.Retainer
}

// Claims unprepares the resource claims of pods. The runtime prepares them before it
// creates a sandbox.
type Claims interface {
	// UnprepareResources blocks until the claims that no other pod uses are unprepared. It
	// is called after all containers of the pod have terminated, and again if it returns
	// an error. It must have no effect for a pod without prepared claims.
	UnprepareResources(ctx context.Context, uid types.UID) error
}

// A Relister refreshes the status of pods that SyncPod has changed. pleg.Generator
// implements it. Its methods must not block.
type Relister interface {
	// RequestRelist requests a relist because something was done in the pod.
	RequestRelist(uid types.UID)

	// RequestReinspect also requests a new inspection, after which the pod is synced
	// whatever the relist shows. It follows a resize, which lists do not show.
	RequestReinspect(uid types.UID)

	// Pin reports that SyncPod is in progress until unpin is called, so that its changes
	// are observed once, at its end, and not for each event of the runtime.
	Pin(uid types.UID) (unpin func())
}

// Resources provides the resources of the node that pods use. Each field may be nil.
type Resources struct {
	Volumes Volumes
	Cgroups Cgroups
	Objects Objects
	Images  Images
	Claims  Claims

	// Allocation allocates resources. Nil: pods have the resources of their spec.
	Allocation Allocation
}

// A Config configures a [Pipeline]. A nil subsystem is left out, with its steps.
type Config struct {
	// Runtime runs the containers. Required.
	Runtime runtime.Runtime

	Status    Reporter
	Admission Admission
	Resources Resources
	Probes    Probes
	Mirrors   podworker.Mirrors

	// Network returns why the network of pods is not ready, or nil. Pods without
	// hostNetwork are not started until it is. It must not block.
	Network func() error

	// Relister is notified of changes by SyncPod. Nil: they are observed by the next
	// relist.
	Relister Relister

	// Steps are inserted into the steps of Sync, Terminate and Cleanup, in this order.
	Steps []Step

	// Record is called with Kubernetes events. It must not block. Nil: events are
	// discarded.
	Record func(runtime.Event)

	// Logger is used for failed mirror pods and pods outside of their cgroup. If nil,
	// logs are discarded.
	Logger *slog.Logger

	// Hooks are called for observation: Rejected and Stepped.
	Hooks Hooks
}

// A Pipeline is the [podworker.Handler] that applies the subsystems of a node to a pod, in the
// kubelet's order. Safe for concurrent use; the methods of Handler must not be called
// concurrently for the same pod.
type Pipeline struct {
	cfg                      Config
	sync, terminate, cleanup []step

	// mu guards the fields below.
	mu     sync.Mutex
	pods   map[types.UID]podState // without zero values
	active map[types.UID]*call    // the calls in progress

	// callLock guards call.inRuntime, also during a report for one of them: a channel of
	// capacity 1, because a Reporter may block in tests with virtual time.
	callLock chan struct{}
}

// A podState is what a Pipeline stores for a pod between calls.
type podState struct {
	starts   map[string]v1.ContainerStateWaiting // why containers do not start; it is not changed
	resized  time.Time                           // when the pod was last reinspected after a resize
	deferred time.Time                           // since when the admission of the pod is deferred
}

// New returns a Pipeline for cfg, or an error if Runtime is nil or one of Steps cannot be inserted.
func New(cfg Config) (*Pipeline, error) {
	if cfg.Runtime == nil {
		return nil, errors.New("pipeline: Config.Runtime is nil")
	}
	if err := compose.Check(cfg.Resources.Volumes, reflect.TypeFor[BlockedReporter]()); err != nil {
		return nil, fmt.Errorf("pipeline: Config.Resources.Volumes: %w", err)
	}
	if cfg.Status == nil {
		cfg.Status = noReporter{}
	}
	if cfg.Relister == nil {
		cfg.Relister = noRelister{}
	}
	if cfg.Record == nil {
		cfg.Record = func(runtime.Event) {}
	}
	if cfg.Admission.Timeout == 0 {
		cfg.Admission.Timeout = 5 * time.Minute
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Pipeline{
		cfg:      cfg,
		pods:     map[types.UID]podState{},
		active:   map[types.UID]*call{},
		callLock: make(chan struct{}, 1),
	}
	p.sync, p.terminate, p.cleanup = p.syncSteps(), p.terminateSteps(), p.cleanupSteps()
	if err := insert(cfg.Steps, &p.sync, &p.terminate, &p.cleanup); err != nil {
		return nil, err
	}
	return p, nil
}

// Retain implements [podworker.Retainer]: it releases the state of pods whose workers were removed,
// also in the subsystems, since Cleanup may not have been called.
func (p *Pipeline) Retain(ctx context.Context, keep func(uid types.UID) bool) error {
	p.mu.Lock()
	maps.DeleteFunc(p.pods, func(uid types.UID, _ podState) bool { return !keep(uid) })
	p.mu.Unlock()
	errs := []error{p.cfg.Status.Retain(ctx, keep)}
	if objects := p.cfg.Resources.Objects; objects != nil {
		errs = append(errs, objects.Retain(ctx, keep))
	}
	if allocation := p.cfg.Resources.Allocation; allocation != nil {
		errs = append(errs, allocation.Retain(ctx, keep))
	}
	return errors.Join(errs...)
}

func (p *Pipeline) report(pod *v1.Pod, observed *runtime.PodStatus, termination runtime.Termination) v1.PodStatus {
	p.mu.Lock()
	starts := p.pods[pod.UID].starts
	p.mu.Unlock()
	return p.cfg.Status.Report(pod, observed, starts, termination)
}

// failed records the event of a failure, unless the call was canceled.
func (p *Pipeline) failed(ctx context.Context, pod *v1.Pod, reason, format string, err error) {
	if ctx.Err() == nil {
		p.event(pod, v1.EventTypeWarning, reason, fmt.Sprintf(format, err))
	}
}

func (p *Pipeline) event(pod *v1.Pod, eventType, reason, message string) {
	p.cfg.Record(runtime.Event{Object: runtime.PodRef(pod), Type: eventType, Reason: reason, Message: message})
}

// storeLocked stores the state of a pod.
func (p *Pipeline) storeLocked(uid types.UID, s podState) {
	if len(s.starts) == 0 && s.resized.IsZero() && s.deferred.IsZero() {
		delete(p.pods, uid)
		return
	}
	p.pods[uid] = s
}

// Reconcile implements [podworker.Reconciler].
func (p *Pipeline) Reconcile(pod *v1.Pod) { p.cfg.Status.Reconcile(p.allocated(pod)) }

type noReporter struct{}

func (noReporter) Report(*v1.Pod, *runtime.PodStatus, map[string]v1.ContainerStateWaiting, runtime.Termination) v1.PodStatus {
	return v1.PodStatus{}
}
func (noReporter) Reconcile(*v1.Pod)                                  {}
func (noReporter) Finish(*v1.Pod)                                     {}
func (noReporter) Retain(context.Context, func(types.UID) bool) error { return nil }

type noRelister struct{}

func (noRelister) RequestRelist(types.UID)      {}
func (noRelister) RequestReinspect(types.UID)   {}
func (noRelister) Pin(types.UID) (unpin func()) { return func() {} }
