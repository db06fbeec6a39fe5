package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Reporter computes and delivers the statuses of pods. status.Manager implements it. Its
// methods must not block.
//
// If it has the method
//
//	Reconcile(pod *v1.Pod)
//
// then it is called with pods whose object has another status than before; see
// [podworker.Loop.ReconcilePods].
type Reporter interface {
	// Report computes and returns the pod's status. observed is the status that
	// the runtime reported, nil if there is none; starts has the reasons why containers do not start, by
	// name; termination is the agent's own reason to terminate the pod.
	Report(pod *v1.Pod, observed *runtime.PodStatus, starts map[string]v1.ContainerStateWaiting, termination runtime.Termination) v1.PodStatus

	// Finish reports that the pod has terminated and was cleaned up, so its object may be
	// deleted.
	Finish(pod *v1.Pod)

	podworker.Retainer
}

// Volumes mounts and unmounts the volumes of pods. If it has the method
//
//	Blocked(uid types.UID) (cause string, retryAt time.Time)
//
// then [podworker.Workers.Snapshot] contains its result while Mount or Unmount is in progress: why it
// has not returned, and when the operation is retried.
type Volumes interface {
	// Mount blocks until every volume that a container of the pod uses is mounted, and
	// returns the volumes by name. An error that wraps a *runtime.Rejection, such as
	// "VolumeAttachmentLimitExceeded", fails the pod.
	Mount(ctx context.Context, pod *v1.Pod) (map[string]runtime.Volume, error)

	// Unmount blocks until all volumes of the pod are unmounted.
	Unmount(ctx context.Context, pod *v1.Pod) error
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

// A Config configures a [Pipeline]. A nil subsystem is left out.
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

	// QuietMountTimeouts suppresses the event FailedMount for volumes that are not
	// mounted in time, as in the kubelet (rule vol-27).
	QuietMountTimeouts bool

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
	cfg Config

	// mu guards the fields below.
	mu       sync.Mutex
	starts   map[types.UID]map[string]v1.ContainerStateWaiting // why containers do not start
	resizes  map[types.UID]time.Time                           // when the pod was last reinspected after a resize
	deferred map[types.UID]time.Time                           // since when the admission of the pod is deferred
	steps    map[types.UID]activeStep                          // of the calls in progress
	syncs    map[types.UID]*activeSync                         // of the calls of Sync in progress

	// callLock guards calls, also during a report for one of them: a channel of
	// capacity 1, because a Reporter may block in tests with virtual time.
	callLock chan struct{}
	calls    map[types.UID]podworker.SyncRequest // pods for which SyncPod or KillPod is in progress
}

// New returns a Pipeline for cfg, or an error if Runtime is nil.
func New(cfg Config) (*Pipeline, error) {
	if cfg.Runtime == nil {
		return nil, errors.New("pipeline: Config.Runtime is nil")
	}
	if cfg.Status == nil {
		cfg.Status = noReporter{}
	}
	if cfg.Network == nil {
		cfg.Network = func() error { return nil }
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
	return &Pipeline{
		cfg:      cfg,
		starts:   map[types.UID]map[string]v1.ContainerStateWaiting{},
		resizes:  map[types.UID]time.Time{},
		deferred: map[types.UID]time.Time{},
		steps:    map[types.UID]activeStep{},
		syncs:    map[types.UID]*activeSync{},
		callLock: make(chan struct{}, 1),
		calls:    map[types.UID]podworker.SyncRequest{},
	}, nil
}

// Sync implements [podworker.Handler]: admission, status, network, cgroup, mirror pod, volumes, probes,
// containers. At the deadline of the pod it is canceled in any of these steps, and the pod fails.
func (p *Pipeline) Sync(ctx context.Context, req podworker.SyncRequest) (podworker.SyncResult, error) {
	limited, end := p.beginDeadline(ctx, req.Pod)
	defer end()
	res, err := p.sync(limited, &req)
	if !res.Terminal && ctx.Err() == nil && errors.Is(context.Cause(limited), errDeadline) {
		return p.exceeded(req.Pod, req.Status), nil
	}
	return res, err
}

// sync is Sync without its deadline. It sets the pod and the status of req to those last reported.
func (p *Pipeline) sync(ctx context.Context, req *podworker.SyncRequest) (podworker.SyncResult, error) {
	desired := req.Pod
	req.Pod = p.allocated(req.Pod) // admission is decided with the allocated resources
	defer p.endSteps(req.UID)
	p.beginStep(req.UID, "admit pod")
	rejection := p.admit(ctx, *req)
	if err := ctx.Err(); err != nil {
		return podworker.SyncResult{}, fmt.Errorf("pipeline: admit pod: %w", err) // it was not decided
	}
	if rejection != nil {
		return p.reject(*req, rejection)
	}
	p.beginStep(req.UID, "report status")
	resources := p.cfg.Resources
	if resources.Allocation != nil {
		req.Pod = resources.Allocation.Allocate(ctx, desired, req.Status)
	}
	status := p.report(req.Pod, req.Status, runtime.Termination{})
	p.setStart(req.Pod, status)
	late, deadline := pastDeadline(req.Pod, status, time.Now())
	switch {
	case status.Phase == v1.PodSucceeded || status.Phase == v1.PodFailed:
		return podworker.SyncResult{Terminal: true}, nil
	case late:
		return p.exceeded(req.Pod, req.Status), nil
	}
	next := podworker.SyncResult{NextSync: deadline}
	if err := p.cfg.Network(); err != nil && !req.Pod.Spec.HostNetwork {
		err = fmt.Errorf("%w: %w", podworker.ErrNetworkNotReady, err)
		p.event(req.Pod, v1.EventTypeWarning, "NetworkNotReady", err.Error())
		return next, err
	}
	if resources.Objects != nil {
		resources.Objects.Register(req.Pod)
	}
	if p.outsideCgroup(*req) {
		return next, p.killOutsideCgroup(ctx, *req)
	}
	if resources.Cgroups != nil {
		p.beginStep(req.UID, "create cgroup")
		if err := resources.Cgroups.Ensure(ctx, req.Pod); err != nil {
			p.failed(ctx, req.Pod, "FailedCreatePodContainer", "unable to ensure pod container exists: %v", err)
			return next, fmt.Errorf("pipeline: ensure cgroup: %w", err)
		}
	}
	if p.cfg.Mirrors != nil {
		p.beginStep(req.UID, "create mirror pod")
		p.syncMirror(ctx, req)
	}
	var volumes map[string]runtime.Volume
	if resources.Volumes != nil {
		var err error
		p.beginStep(req.UID, stepMount)
		if volumes, err = resources.Volumes.Mount(ctx, req.Pod); err != nil {
			if rejection, ok := errors.AsType[*runtime.Rejection](err); ok {
				return p.reject(*req, rejection)
			}
			if !p.cfg.QuietMountTimeouts || !errors.Is(err, context.DeadlineExceeded) {
				p.failed(ctx, req.Pod, "FailedMount", "Unable to attach or mount volumes: %v", err)
			}
			return next, fmt.Errorf("pipeline: mount volumes: %w", err)
		}
	}
	rtReq := runtime.SyncRequest{Pod: req.Pod, Status: req.Status, Volumes: volumes}
	if p.cfg.Probes != nil {
		p.cfg.Probes.Add(req.Pod) // after the volumes are mounted (rule sl-36)
		rtReq.Probes = p.cfg.Probes.Results(req.Pod)
	}
	p.beginStep(req.UID, "sync containers")
	defer p.cfg.Relister.Pin(req.UID)() // until the relist has been requested
	returned := p.beginCall(*req)
	res, err := p.syncPod(ctx, rtReq)
	req.Status = returned()
	next.RetryAt, next.Idle = res.RetryAt, len(res.Actions) == 0
	resized, failed := p.resized(ctx, desired, res.Actions)
	if starts, isNew := p.storeStartErrors(req.UID, res.Actions); isNew || failed {
		// The runtime does not list a container that did not start or a resize that
		// failed, so no event of the runtime causes a report.
		p.cfg.Status.Report(req.Pod, req.Status, starts, runtime.Termination{})
	}
	switch {
	case resized && !failed:
		next.NextSync = earlier(next.NextSync, p.reinspect(req.UID, time.Now()))
	case len(res.Actions) > 0:
		p.cfg.Relister.RequestRelist(req.UID)
	}
	return next, err
}

// Terminate implements [podworker.Handler]: probes that restart containers, containers, other probes,
// resource claims.
func (p *Pipeline) Terminate(ctx context.Context, req podworker.SyncRequest) error {
	defer p.endSteps(req.UID)
	p.beginStep(req.UID, stepStop)
	rtReq := runtime.KillRequest{UID: req.UID, Pod: req.Pod, Status: req.Status, GracePeriodSeconds: req.GracePeriodSeconds}
	if req.Pod == nil {
		if err := p.cfg.Runtime.KillPod(ctx, rtReq); err != nil {
			return fmt.Errorf("pipeline: kill orphan: %w", err)
		}
		if err := p.unprepare(ctx, req.UID); err != nil {
			return err
		}
		p.cfg.Relister.RequestRelist(req.UID)
		return nil
	}
	req.Pod = p.allocated(req.Pod)
	p.report(req.Pod, req.Status, req.Termination)
	if p.cfg.Probes != nil {
		p.cfg.Probes.StopLiveness(req.Pod)
	}
	returned := p.beginCall(req)
	err := p.cfg.Runtime.KillPod(ctx, rtReq)
	returned()
	if err != nil {
		p.failed(ctx, req.Pod, "FailedKillPod", "error killing pod: %v", err)
		return fmt.Errorf("pipeline: kill pod: %w", err)
	}
	if p.cfg.Probes != nil {
		p.cfg.Probes.Remove(req.UID)
	}
	p.beginStep(req.UID, "inspect terminated containers")
	last, err := p.cfg.Runtime.PodStatus(ctx, req.UID)
	if err != nil {
		return fmt.Errorf("pipeline: inspect terminated pod: %w", err)
	}
	for _, c := range last.Containers {
		if c.State == runtime.ContainerRunning {
			return fmt.Errorf("pipeline: container %s (%s) is running after KillPod succeeded", c.Name, c.ID)
		}
	}
	if err := p.unprepare(ctx, req.UID); err != nil { // before a terminal phase is published (rule sl-40)
		return err
	}
	if len(last.IPs) == 0 && req.Status != nil {
		last.IPs = req.Status.IPs // those of the removed sandbox remain in the status
	}
	termination := req.Termination
	termination.Terminal = true
	p.report(req.Pod, last, termination)
	p.cfg.Relister.RequestRelist(req.UID)
	return nil
}

// unprepare unprepares the resource claims of a pod without running containers.
func (p *Pipeline) unprepare(ctx context.Context, uid types.UID) error {
	if p.cfg.Resources.Claims == nil {
		return nil
	}
	p.beginStep(uid, "unprepare resource claims")
	if err := p.cfg.Resources.Claims.UnprepareResources(ctx, uid); err != nil {
		return fmt.Errorf("pipeline: %w", err)
	}
	return nil
}

// Cleanup implements [podworker.Handler]: volumes, cgroup, the final status. Containers and logs are
// left for garbage collection, so that logs can be read until the object is deleted.
func (p *Pipeline) Cleanup(ctx context.Context, req podworker.SyncRequest) error {
	termination := req.Termination
	termination.Terminal = true
	req.Pod = p.allocated(req.Pod)
	p.report(req.Pod, req.Status, termination)
	defer p.endSteps(req.UID)
	resources := p.cfg.Resources
	if resources.Volumes != nil {
		p.beginStep(req.UID, stepUnmount)
		if err := resources.Volumes.Unmount(ctx, req.Pod); err != nil {
			return fmt.Errorf("pipeline: unmount volumes: %w", err)
		}
	}
	if resources.Objects != nil {
		resources.Objects.Unregister(req.UID) // volumes use them until they are unmounted
	}
	if resources.Cgroups != nil {
		p.beginStep(req.UID, "remove cgroup")
		if err := resources.Cgroups.Remove(ctx, req.UID); err != nil {
			return fmt.Errorf("pipeline: remove cgroup: %w", err)
		}
	}
	p.cfg.Status.Finish(req.Pod)
	p.forget(req.UID)
	p.release(req.UID)
	return nil
}

// Retain implements [podworker.Retainer]: it releases the state of pods whose workers were removed,
// also in the subsystems, since Cleanup may not have been called.
func (p *Pipeline) Retain(ctx context.Context, keep func(uid types.UID) bool) error {
	p.mu.Lock()
	maps.DeleteFunc(p.starts, func(uid types.UID, _ map[string]v1.ContainerStateWaiting) bool { return !keep(uid) })
	maps.DeleteFunc(p.resizes, func(uid types.UID, _ time.Time) bool { return !keep(uid) })
	maps.DeleteFunc(p.deferred, func(uid types.UID, _ time.Time) bool { return !keep(uid) })
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

// syncMirror syncs the mirror pod of a static pod. Failures are only logged: a static pod runs
// without the API server.
func (p *Pipeline) syncMirror(ctx context.Context, req *podworker.SyncRequest) {
	if !runtime.IsStatic(req.Pod) {
		return
	}
	if err := podworker.SyncMirror(ctx, p.cfg.Mirrors, req.Pod, req.Mirror); err != nil && ctx.Err() == nil {
		p.cfg.Logger.Warn("Failed to sync mirror pod; will retry at the next sync", "pod", req.Pod.Namespace+"/"+req.Pod.Name, "podUID", req.UID, "err", err)
	}
}

func (p *Pipeline) report(pod *v1.Pod, observed *runtime.PodStatus, termination runtime.Termination) v1.PodStatus {
	p.mu.Lock()
	starts := p.starts[pod.UID] // not changed once it is in the map
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

func (p *Pipeline) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.starts, uid)
	delete(p.resizes, uid)
	delete(p.deferred, uid)
}

// Reconcile implements the optional interface of [podworker.Handler]. It calls Config.Status, if that has the
// method Reconcile.
func (p *Pipeline) Reconcile(pod *v1.Pod) {
	if r, ok := p.cfg.Status.(interface{ Reconcile(pod *v1.Pod) }); ok {
		r.Reconcile(p.allocated(pod))
	}
}

type noReporter struct{}

func (noReporter) Report(*v1.Pod, *runtime.PodStatus, map[string]v1.ContainerStateWaiting, runtime.Termination) v1.PodStatus {
	return v1.PodStatus{}
}
func (noReporter) Finish(*v1.Pod)                                     {}
func (noReporter) Retain(context.Context, func(types.UID) bool) error { return nil }

type noRelister struct{}

func (noRelister) RequestRelist(types.UID)      {}
func (noRelister) RequestReinspect(types.UID)   {}
func (noRelister) Pin(types.UID) (unpin func()) { return func() {} }
