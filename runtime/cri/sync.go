package cri

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/logs"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/podenv"
)

// A podSync is the state of one SyncPod: it carries out the plan and collects the result.
type podSync struct {
	r       *Runtime
	pod     *v1.Pod
	status  *runtime.PodStatus
	volumes map[string]runtime.Volume

	config   *runtimeapi.PodSandboxConfig // of the sandbox in which containers start
	sandbox  string                       // its ID
	fresh    bool                         // created by this sync, and the pod had no containers before
	ips      []string                     // of the sandbox
	result   runtime.SyncResult
	trace    Trace
	prefetch prefetch

	starts      []plan.Start
	unstarted   unstarted           // by the last start
	unaddressed bool                // containers are configured before their sandbox exists
	restored    map[string]instance // created instances by name, after a restore

	env map[string]*podenv.Env // of the container that was configured last, by name

	imageVolumes map[string]images.Result // by name

	retryable bool // a failure may be resolved externally
}

// resyncPeriod is the delay of the next sync after a failure that may be resolved
// externally: an image may be imported, a volume mounted.
const resyncPeriod = 10 * time.Second

// SyncPod implements [runtime.Runtime]: it computes the plan and carries it out, in the
// kubelet's order.
func (r *Runtime) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	if req.Pod == nil || req.Pod.UID == "" {
		return runtime.SyncResult{}, errors.New("cri: SyncRequest.Pod is nil or has no UID")
	}
	if err := checkNames(req.Pod); err != nil {
		return runtime.SyncResult{}, err
	}
	begun := time.Now()
	status := req.Status
	if status == nil {
		var err error
		if status, err = r.PodStatus(ctx, req.Pod.UID); err != nil {
			return runtime.SyncResult{}, err
		}
	}
	rec := r.checkpointTerminated(req.Pod, status)
	status = rec.actuatedIn(status)
	s := &podSync{r: r, pod: req.Pod, status: status, volumes: req.Volumes, ips: status.IPs}
	s.trace = Trace{Pod: req.Pod, Begin: begun}
	s.trace.Spans = append(s.trace.Spans, Span{Step: "Plan", Begin: begun})
	defer s.endTrace()
	checkpoint, err := r.restoreFrom(req.Pod, rec, status)
	if err != nil {
		s.noCheckpoint(joinContextErr(ctx, err))
		return s.result, s.result.Err()
	}
	p := plan.Compute(plan.Input{
		Pod: req.Pod, Status: status, Probes: req.Probes, Backoff: r.backoff,
		History: plan.History{
			RestartCounts: rec.Restarts, FirstRestartCounts: rec.First, Exits: rec.exitStatuses(), Terminated: rec.Terminated,
			SandboxAttempts: rec.Attempts, PodResources: rec.Pod,
		},
		RestoreFrom: checkpoint, IgnoreRestartAll: r.cfg.Containers.IgnoreRestartAll, Now: time.Now(),
	})
	if !p.Empty() {
		r.log.Debug("Computed plan", "pod", req.Pod.Namespace+"/"+req.Pod.Name, "podUID", req.Pod.UID, "steps", p.String())
	}
	s.execute(ctx, p)
	s.prefetch.wait(s.sandbox != "")
	if s.retryable && !s.result.RetryAt.IsZero() {
		s.retryAt(time.Now().Add(resyncPeriod))
	}
	if synced := r.cfg.Hooks.Synced; synced != nil {
		synced(SyncInfo{Pod: req.Pod, Plan: p, Result: s.result, Begin: begun, End: time.Now()})
	}
	if err := ctx.Err(); err != nil {
		return s.result, errors.Join(err, s.result.Err())
	}
	return s.result, s.result.Err()
}

// endTrace ends the trace and reports it.
func (s *podSync) endTrace() {
	if len(s.result.Actions) == 0 || s.r.cfg.Hooks.Traced == nil {
		return
	}
	s.trace.End = time.Now()
	s.trace.close(s.trace.End)
	s.r.cfg.Hooks.Traced(s.trace)
}

// execute carries out the plan. It stops at the first failure after which further
// operations would be wrong.
func (s *podSync) execute(ctx context.Context, p plan.Plan) {
	s.starts = p.Start
	s.checkpointReplaced(p.Replaced)
	if p.Restore == "" {
		s.checkpointRestore("")
	}
	switch {
	case p.KillPod:
		if p.CreateSandbox && p.Changed != "" {
			s.event(runtime.PodRef(s.pod), v1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
		}
		if !s.stopPod(ctx) {
			return
		}
	case !s.stopContainers(ctx, p.Kill):
		return // its container may be in p.Start
	case len(p.Remove) > 0:
		s.restartAll(ctx, p.Remove)
		return
	default:
		s.unfinishedHooks(ctx, p.Kill)
	}
	if ctx.Err() != nil {
		return
	}
	if len(p.Start) > 0 || p.CreateSandbox {
		if !s.ensureSandbox(ctx, p) {
			return
		}
	}
	s.resize(ctx, p)
	s.startAll(ctx, p.Restore != "")
	if p.Restore != "" {
		s.completeRestore(ctx)
	}
}

// ensureSandbox creates or configures the sandbox in which containers start.
func (s *podSync) ensureSandbox(ctx context.Context, p plan.Plan) bool {
	if p.CreateSandbox {
		if !s.newSandbox(ctx, p) {
			return false
		}
	} else if s.sandbox = p.SandboxID; !s.configureSandbox(ctx, p) {
		return false
	}
	if p.Restore != "" {
		return s.addressRestored(ctx)
	}
	s.volumeImages(ctx)
	return true
}

// startAll starts containers sequentially. It stops if ctx is done, if an init container that
// the others depend on failed to start, or if a container that is being restored did.
func (s *podSync) startAll(ctx context.Context, restoring bool) {
	for i := range s.starts {
		if ctx.Err() != nil {
			return
		}
		st := &s.starts[i]
		s.unstarted = 0
		switch {
		case s.start(ctx, st):
		case st.Kind == plan.Init && !podspec.IsSidecar(st.Container):
			return
		case restoring && s.unstarted != 0 && st.Resume != "" && st.Kind != plan.Ephemeral:
			s.undoRestore(ctx)
			return
		}
	}
}

// stopPod stops the pod and reports whether it succeeded.
func (s *podSync) stopPod(ctx context.Context) bool {
	begun := time.Now()
	s.trace.begin("KillPod", "")
	err := s.r.stop(ctx, stopRequest{uid: s.pod.UID, pod: s.pod, status: s.status, event: s.event})
	s.done(runtime.Action{Kind: runtime.KillPodSandbox, Target: s.fullName(), Err: err, Reason: "KillPodSandboxError"}, begun)
	return err == nil
}

// stopContainers stops instances and reports whether all succeeded.
func (s *podSync) stopContainers(ctx context.Context, kills []plan.Kill) bool {
	ok := true
	for _, k := range kills {
		begun := time.Now()
		s.trace.begin("KillContainer", k.Name)
		err := s.r.stopOne(ctx, target{
			pod: s.pod, spec: k.Container, id: k.ID, name: k.Name, message: k.Message,
			grace: k.GracePeriodSeconds, ips: s.ips, event: s.event,
		})
		s.done(runtime.Action{Kind: runtime.KillContainer, Target: k.Name, Err: err, Reason: "KillContainerError"}, begun)
		ok = ok && err == nil
	}
	return ok
}

// newSandbox creates the pod's sandbox and reports whether containers can start in it.
func (s *podSync) newSandbox(ctx context.Context, p plan.Plan) bool {
	begun := time.Now()
	s.trace.begin("CreatePodSandbox", "")
	if m := s.r.cfg.Providers.Managers; m != nil {
		if err := m.PreparePod(ctx, s.pod); err != nil {
			s.event(runtime.PodRef(s.pod), v1.EventTypeWarning, "FailedPrepareDynamicResources",
				"Failed to prepare dynamic resources: "+errorMessage(err))
			return s.done(runtime.Action{Kind: runtime.CreatePodSandbox, Target: s.fullName(), Err: joinContextErr(ctx, err), Reason: "CreatePodSandboxError"}, begun)
		}
	}
	id, err := s.createSandbox(ctx, p)
	if err == nil && p.Restore != "" {
		s.starts, err = s.restoredStarts(p.Start)
	}
	if err == nil {
		s.trace.begin("Checkpoint", "")
		s.r.checkpoints.update(s.pod, func(rec *podCheckpoint) {
			rec.Attempts, rec.Pod = p.Attempt+1, podLevel(s.pod)
			for name, inst := range s.restored {
				rec.countInstance(name, inst.attempt)
			}
		})
	}
	if err != nil && ctx.Err() == nil {
		s.event(runtime.PodRef(s.pod), v1.EventTypeWarning, "FailedCreatePodSandBox", "Failed to create pod sandbox: "+errorMessage(err))
	}
	s.sandbox = id
	if !s.done(runtime.Action{Kind: runtime.CreatePodSandbox, Target: s.fullName(), Err: joinContextErr(ctx, err), Reason: "CreatePodSandboxError"}, begun) {
		return false
	}
	s.trace.begin("InspectSandbox", "")
	made, err := s.r.sandboxStatus(ctx, s.pod.UID, id)
	if err != nil {
		if ctx.Err() == nil {
			s.event(runtime.PodRef(s.pod), v1.EventTypeWarning, "FailedPodSandBoxStatus", "Unable to get pod sandbox status: "+errorMessage(err))
		}
		return s.done(runtime.Action{Kind: runtime.ConfigPodSandbox, Target: s.fullName(), Err: joinContextErr(ctx, err), Reason: "ConfigPodSandboxError"}, begun)
	}
	s.r.announcements.sandboxInspected(s.pod.UID, &made)
	s.ips = made.IPs
	return true
}

// configureSandbox computes the configuration of the existing sandbox, which the creation
// of containers requires.
func (s *podSync) configureSandbox(ctx context.Context, p plan.Plan) bool {
	begun := time.Now()
	if err := s.existingSandbox(ctx, p); err != nil {
		return s.done(runtime.Action{Kind: runtime.ConfigPodSandbox, Target: s.fullName(), Err: joinContextErr(ctx, err), Reason: "ConfigPodSandboxError"}, begun)
	}
	return true
}

// done adds an action to the result and reports whether it succeeded. The default message
// of a failed action is that of its error.
func (s *podSync) done(a runtime.Action, begun time.Time) bool {
	if a.Err == nil {
		a.Reason, a.Message = "", ""
	} else if a.Message == "" {
		a.Message = errorMessage(a.Err)
	}
	a.Message = logs.Text(a.Message, maxErrorBytes)
	s.result.Actions = append(s.result.Actions, a)
	if s.r.cfg.Hooks.Acted != nil {
		info := ActInfo{Pod: s.pod, Action: a, Duration: time.Since(begun)}
		if a.Kind == runtime.CreatePodSandbox {
			info.Handler, _ = s.handlerName() // the action fails with the same error
		}
		s.r.cfg.Hooks.Acted(info)
	}
	return a.Err == nil
}

// retryAt sets the time of the next attempt if it is earlier.
func (s *podSync) retryAt(at time.Time) {
	if s.result.RetryAt.IsZero() || at.Before(s.result.RetryAt) {
		s.result.RetryAt = at
	}
}

// fullName returns the pod's name in the form of the kubelet's results.
func (s *podSync) fullName() string { return s.pod.Name + "_" + s.pod.Namespace }

func (s *podSync) event(ref v1.ObjectReference, eventType, reason, message string) {
	s.r.cfg.Record(runtime.Event{Object: ref, Type: eventType, Reason: reason, Message: message})
}
