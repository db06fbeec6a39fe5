package podworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Reporter takes what becomes known of a pod, and answers with what its
// status says now. status.Manager is one. Its methods don't block.
type Reporter interface {
	// Report computes the pod's status from what was observed (nil: nothing
	// was), from why containers don't start, and from the agent's own word on
	// the pod.
	Report(pod *v1.Pod, observed *runtime.PodStatus, starts map[string]runtime.Waiting, end runtime.Termination) v1.PodStatus

	// Finish says that the pod is at its end and has been cleaned up: no
	// container of it is left unaccounted for, and its object may go.
	Finish(pod *v1.Pod)

	// Forget says that no source wants the pod and nothing of it is left.
	Forget(pod *v1.Pod)
}

// Volumes get a pod's volumes ready and away.
type Volumes interface {
	// Mount waits until every volume of the pod that a container uses is ready,
	// and returns where, by the names of the volumes. An error that wraps a *runtime.Rejection
	// ends the pod: "VolumeAttachmentLimitExceeded" (sl-34).
	Mount(ctx context.Context, pod *v1.Pod) (map[string]runtime.Volume, error)

	// Unmount waits until no volume of the pod is left.
	Unmount(ctx context.Context, pod *v1.Pod) error
}

// Probes watch over the containers of a pod. Their methods don't block.
type Probes interface {
	// Add probes the pod, if it isn't probed yet.
	Add(pod *v1.Pod)

	// StopLiveness ends the probes that could restart a container, and keeps
	// those that say whether it serves.
	StopLiveness(pod *v1.Pod)

	// Results returns what the liveness and startup probes of the pod have come
	// to, for the runtime to act on.
	Results(pod *v1.Pod) *runtime.ProbeResults

	// Remove ends all probes of the pod.
	Remove(uid types.UID)
}

// Objects hold what pods refer to by name: Secrets, ConfigMaps, and whatever
// else is fetched for them. Their methods don't block.
type Objects interface {
	// Register says that the pod is about to be worked on, so that what it
	// refers to will be asked for. It comes before anything of it is, at each
	// sync: a second call brings what the pod's object refers to now (oc-2).
	Register(pod *v1.Pod)

	// Unregister says that nothing of the pod will be asked for any more. A UID
	// that is not registered is no error.
	Unregister(uid types.UID)
}

// A PipelineConfig names the subsystems of a [Pipeline]. All but Runtime may be
// nil: that subsystem is not there.
type PipelineConfig struct {
	Runtime runtime.Runtime
	Status  Reporter
	Admit   Admitter
	Volumes Volumes
	Cgroups Cgroups
	Probes  Probes
	Mirrors Mirrors
	Objects Objects
	Images  Images

	// Readmit asks Admit also about pods that run already, as the kubelet
	// does, which a full node may end (lq-28, L-60).
	Readmit bool

	// QuietMountTimeouts makes no event of volumes that are not ready in time,
	// as the kubelet does, whose users wait without knowing for what (nq-12,
	// vol-27).
	QuietMountTimeouts bool

	// AdmitWithin is how long a pod waits for what Admit says may yet come
	// (runtime.Rejection.Deferred). Zero: 5 minutes.
	AdmitWithin time.Duration

	// Allocation grants resources. Nil: pods have what they ask for.
	Allocation Allocation

	// Network returns why pods get no network at the moment, or nil.
	Network func() error

	// Relist asks for a fresh look at a pod in which something was done:
	// pleg.Generator.RequestRelist.
	Relist func(uid types.UID)

	// Reinspect is Relist for what lists do not show: after it the pod is
	// synced again, whatever the look shows: pleg.Generator.RequestReinspect.
	// It is asked for when a resize was carried out (al-20). Nil: Relist, and
	// that the resize is done is seen at the next sync.
	Reinspect func(uid types.UID)

	// Hold says that SyncPod is at work on a pod, until the func that it
	// returns is called: pleg.Generator.Hold. What SyncPod does is then read
	// once, at its end, and not each time that the runtime hints at a part of
	// it (L-12). Nil: there is no such thing.
	Hold func(uid types.UID) (release func())

	// Record takes the events that kubectl describe shows.
	Record func(runtime.Event)

	// Logger, nil discards.
	Logger *slog.Logger

	// Hooks observe; see there.
	Hooks PipelineHooks
}

// A Pipeline is the Handler that takes a pod through the subsystems of a node,
// in the kubelet's order (sections 3.3, 3.4 and 3.6).
type Pipeline struct {
	cfg PipelineConfig

	// mu guards the fields below.
	mu      sync.Mutex
	starts  map[types.UID]map[string]runtime.Waiting // why containers that should run don't
	resizes map[types.UID]time.Time                  // when the pod was last reinspected because of one
	waiting map[types.UID]time.Time                  // since when it waits to be let in
	steps   map[types.UID]atStep                     // what the call in flight is at

	// calling guards calls, and is held for a report that is made with it: a channel
	// of capacity 1, because a Reporter may wait in virtual time.
	calling chan struct{}
	calls   map[types.UID]SyncRequest // pods for which SyncPod or KillPod is in progress
}

// NewPipeline returns a Pipeline for cfg, or an error if it lacks the Runtime.
func NewPipeline(cfg PipelineConfig) (*Pipeline, error) {
	if cfg.Runtime == nil {
		return nil, errors.New("podworker: PipelineConfig.Runtime is nil")
	}
	if cfg.Status == nil {
		cfg.Status = nobody{}
	}
	if cfg.Network == nil {
		cfg.Network = func() error { return nil }
	}
	if cfg.Relist == nil {
		cfg.Relist = func(types.UID) {}
	}
	if cfg.Reinspect == nil {
		cfg.Reinspect = cfg.Relist
	}
	if cfg.Hold == nil {
		cfg.Hold = func(types.UID) (release func()) { return func() {} }
	}
	if cfg.Record == nil {
		cfg.Record = func(runtime.Event) {}
	}
	if cfg.AdmitWithin == 0 {
		cfg.AdmitWithin = 5 * time.Minute
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Pipeline{
		cfg:     cfg,
		starts:  map[types.UID]map[string]runtime.Waiting{},
		resizes: map[types.UID]time.Time{},
		waiting: map[types.UID]time.Time{},
		steps:   map[types.UID]atStep{},
		calling: make(chan struct{}, 1),
		calls:   map[types.UID]SyncRequest{},
	}, nil
}

// Sync implements [Handler]: admission, status, network, cgroup, mirror pod,
// volumes, probes, containers (section 3.3).
func (p *Pipeline) Sync(ctx context.Context, w SyncRequest) (SyncResult, error) {
	wanted := w.Pod
	w.Pod = p.granted(w.Pod) // al-3: it is asked about with what it was granted
	defer p.done(w.UID)
	p.at(w.UID, "admission")
	if rejection := p.admit(ctx, w); rejection != nil {
		return p.reject(w, rejection)
	}
	p.at(w.UID, "status")
	if p.cfg.Allocation != nil {
		w.Pod = p.cfg.Allocation.Allocate(ctx, wanted, w.Status)
	}
	status := p.report(w.Pod, w.Status, runtime.Termination{})
	var end runtime.Termination
	late, deadline := pastDeadline(w.Pod, status, time.Now())
	if late {
		end = runtime.Termination{Failed: true, Reason: deadlineReason, Message: deadlineMessage}
		status = p.report(w.Pod, w.Status, end)
		p.event(w.Pod, v1.EventTypeNormal, deadlineReason, deadlineMessage)
	}
	if late || status.Phase == v1.PodSucceeded || status.Phase == v1.PodFailed {
		return SyncResult{Terminal: true, Ending: end}, nil
	}
	next := SyncResult{At: deadline}
	if err := p.cfg.Network(); err != nil && !w.Pod.Spec.HostNetwork {
		err = fmt.Errorf("%w: %w", ErrNetworkNotReady, err)
		p.event(w.Pod, v1.EventTypeWarning, "NetworkNotReady", err.Error())
		return next, err
	}
	if p.cfg.Objects != nil {
		p.cfg.Objects.Register(w.Pod)
	}
	if p.outside(w) {
		return next, p.bringIn(ctx, w)
	}
	if p.cfg.Cgroups != nil {
		p.at(w.UID, "cgroup")
		if err := p.cfg.Cgroups.Ensure(ctx, w.Pod); err != nil {
			p.failed(ctx, w.Pod, "FailedCreatePodContainer", "unable to ensure pod container exists: %v", err)
			return next, fmt.Errorf("podworker: ensure cgroup: %w", err)
		}
	}
	if p.cfg.Mirrors != nil {
		p.at(w.UID, "mirror pod")
		p.mirror(ctx, w)
	}
	var volumes map[string]runtime.Volume
	if p.cfg.Volumes != nil {
		var err error
		p.at(w.UID, stepVolumes)
		if volumes, err = p.cfg.Volumes.Mount(ctx, w.Pod); err != nil {
			if rejection, ok := errors.AsType[*runtime.Rejection](err); ok {
				return p.reject(w, rejection)
			}
			if !p.cfg.QuietMountTimeouts || !errors.Is(err, context.DeadlineExceeded) {
				p.failed(ctx, w.Pod, "FailedMount", "Unable to attach or mount volumes: %v", err)
			}
			return next, fmt.Errorf("podworker: mount volumes: %w", err)
		}
	}
	req := runtime.SyncRequest{Pod: w.Pod, Status: w.Status, Volumes: volumes}
	if p.cfg.Probes != nil {
		p.cfg.Probes.Add(w.Pod) // volumes are there: no probe runs before the first mount (sl-36)
		req.Probes = p.cfg.Probes.Results(w.Pod)
	}
	p.at(w.UID, "runtime")
	defer p.cfg.Hold(w.UID)() // after the look is asked for, so that it is one
	returned := p.whileCalling(w)
	res, err := p.syncPod(ctx, req)
	returned()
	next.Retry, next.Idle = res.RetryAt, len(res.Actions) == 0
	resized, failed := p.resized(ctx, wanted, res.Actions)
	if p.remember(w.UID, res.Actions) || failed {
		// A container that did not start, or a resize that failed, leaves no
		// trace in the runtime, so nobody else would tell why.
		p.report(w.Pod, w.Status, runtime.Termination{})
	}
	switch {
	case resized && !failed:
		next.At = earlier(next.At, p.lookAgain(w.UID, time.Now()))
	case len(res.Actions) > 0:
		p.cfg.Relist(w.UID)
	}
	return next, err
}

// Terminate implements [Handler]: probes that restart, containers, the other
// probes.
func (p *Pipeline) Terminate(ctx context.Context, w SyncRequest) error {
	defer p.done(w.UID)
	p.at(w.UID, "stop")
	req := runtime.KillRequest{UID: w.UID, Pod: w.Pod, Status: w.Status, GracePeriodSeconds: w.GracePeriodSeconds}
	if w.Pod == nil {
		if err := p.cfg.Runtime.KillPod(ctx, req); err != nil {
			return fmt.Errorf("podworker: kill orphan: %w", err)
		}
		p.cfg.Relist(w.UID)
		return nil
	}
	w.Pod = p.granted(w.Pod)
	p.report(w.Pod, w.Status, w.Ending)
	if p.cfg.Probes != nil {
		p.cfg.Probes.StopLiveness(w.Pod)
	}
	returned := p.whileCalling(w)
	err := p.cfg.Runtime.KillPod(ctx, req)
	returned()
	if err != nil {
		p.failed(ctx, w.Pod, "FailedKillPod", "error killing pod: %v", err)
		return fmt.Errorf("podworker: kill pod: %w", err)
	}
	if p.cfg.Probes != nil {
		p.cfg.Probes.Remove(w.UID)
	}
	p.at(w.UID, "last look")
	last, err := p.cfg.Runtime.PodStatus(ctx, w.UID)
	if err != nil {
		return fmt.Errorf("podworker: look at the stopped pod: %w", err)
	}
	for _, c := range last.Containers {
		if c.State == runtime.ContainerRunning {
			return fmt.Errorf("podworker: container %s (%s) runs after a successful KillPod: the runtime breaks its contract", c.Name, c.ID)
		}
	}
	if len(last.IPs) == 0 && w.Status != nil {
		last.IPs = w.Status.IPs // the sandbox took them along, the status keeps them
	}
	end := w.Ending
	end.Terminal = true
	p.report(w.Pod, last, end)
	p.cfg.Relist(w.UID)
	return nil
}

// Cleanup implements [Handler]: volumes, cgroup, the last word on the status.
// Containers and logs are left for garbage collection, so that logs stay
// readable until the object is gone (sl-48).
func (p *Pipeline) Cleanup(ctx context.Context, w SyncRequest) error {
	end := w.Ending
	end.Terminal = true
	w.Pod = p.granted(w.Pod)
	p.report(w.Pod, w.Status, end)
	defer p.done(w.UID)
	if p.cfg.Volumes != nil {
		p.at(w.UID, stepVolumes)
		if err := p.cfg.Volumes.Unmount(ctx, w.Pod); err != nil {
			return fmt.Errorf("podworker: unmount volumes: %w", err)
		}
	}
	if p.cfg.Objects != nil {
		p.cfg.Objects.Unregister(w.UID) // vol-30: its volumes are the last to read of them
	}
	if p.cfg.Cgroups != nil {
		p.at(w.UID, "cgroup")
		if err := p.cfg.Cgroups.Remove(ctx, w.UID); err != nil {
			return fmt.Errorf("podworker: remove cgroup: %w", err)
		}
	}
	p.cfg.Status.Finish(w.Pod)
	p.forget(w.UID)
	p.release(w.UID)
	return nil
}

// Forget implements [Forgetter].
func (p *Pipeline) Forget(pod *v1.Pod) {
	if p.cfg.Objects != nil {
		p.cfg.Objects.Unregister(pod.UID) // one that never came to its cleanup
	}
	p.forget(pod.UID)
	p.release(pod.UID)
	p.cfg.Status.Forget(pod)
}

func (p *Pipeline) report(pod *v1.Pod, observed *runtime.PodStatus, end runtime.Termination) v1.PodStatus {
	p.mu.Lock()
	starts := p.starts[pod.UID] // never changed once it is in the map
	p.mu.Unlock()
	return p.cfg.Status.Report(pod, observed, starts, end)
}

// failed records a failure, unless it is only that the work was called off.
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
	delete(p.waiting, uid)
}

// nobody is the Reporter of a Pipeline that has none.
type nobody struct{}

func (nobody) Report(*v1.Pod, *runtime.PodStatus, map[string]runtime.Waiting, runtime.Termination) v1.PodStatus {
	return v1.PodStatus{}
}
func (nobody) Finish(*v1.Pod) {}
func (nobody) Forget(*v1.Pod) {}
