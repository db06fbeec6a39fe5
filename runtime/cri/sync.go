package cri

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/restart"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// A step is one SyncPod: the plan is carried out with it, and it collects what
// came of that.
type podSync struct {
	r       *Runtime
	pod     *v1.Pod
	status  *runtime.PodStatus
	volumes map[string]runtime.Volume

	config   *runtimeapi.PodSandboxConfig // of the sandbox that containers go into
	sandbox  string                       // its ID
	fresh    bool                         // it was made by this sync, and nothing of the pod was there before
	ips      []string                     // and addresses
	result   runtime.SyncResult
	trace    Trace
	prefetch prefetch

	imageVolumes map[string]images.Result // by name

	retryable bool // something failed that may be put right from outside
}

// lookAgain is how soon a pod is looked at again of which something failed that
// may be mended from outside: an image may be imported, a volume appear. Only a
// crash back-off is nobody else's to end.
const resyncPeriod = 10 * time.Second

// SyncPod implements [runtime.Syncer]: it computes the plan and carries it out,
// in the kubelet's order (section 4.9).
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
	p := plan.Compute(plan.Input{
		Pod: req.Pod, Status: status, Probes: req.Probes, Backoff: r.backoff,
		History: plan.History{
			RestartCounts: rec.Restarts, FirstRestartCounts: rec.First, Exits: rec.exitStatuses(), Terminated: rec.Terminated,
			SandboxAttempts: rec.Attempts, PodResources: rec.Pod,
		},
		IgnoreRestartAll: r.cfg.Containers.IgnoreRestartAll, Now: time.Now(),
	})
	if !p.Empty() {
		r.log.Debug("plan", "pod", req.Pod.Namespace+"/"+req.Pod.Name, "uid", req.Pod.UID, "steps", p.String())
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

// traced tells where the time went.
func (s *podSync) endTrace() {
	if len(s.result.Actions) == 0 || s.r.cfg.Hooks.Traced == nil {
		return
	}
	s.trace.End = time.Now()
	s.trace.close(s.trace.End)
	s.r.cfg.Hooks.Traced(s.trace)
}

// carryOut does what the plan says, and stops where going on could do harm
// (section 4.9).
func (s *podSync) execute(ctx context.Context, p plan.Plan) {
	switch {
	case p.KillPod:
		if p.CreateSandbox && p.Changed != "" {
			s.event(runtime.PodRef(s.pod), v1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
		}
		if !s.stopPod(ctx) {
			return
		}
	case !s.stopContainers(ctx, p.Kill):
		return // its name may be among those to start
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
	s.startAll(ctx, p.Start)
}

// placed sees to the sandbox that containers are to go into.
func (s *podSync) ensureSandbox(ctx context.Context, p plan.Plan) bool {
	if p.CreateSandbox {
		if !s.newSandbox(ctx, p) {
			return false
		}
	} else if s.sandbox = p.SandboxID; !s.configureSandbox(ctx, p) {
		return false
	}
	s.volumeImages(ctx)
	return true
}

// startAll starts containers one after the other (rt-70), and reports whether
// what comes after them may go on: not if ctx has ended, nor after an init
// container that the others wait for has failed to start.
func (s *podSync) startAll(ctx context.Context, starts []plan.Start) bool {
	for i := range starts {
		if ctx.Err() != nil {
			return false
		}
		st := &starts[i]
		if !s.start(ctx, st) && st.Kind == plan.Init && !restart.Sidecar(st.Container) {
			return false
		}
	}
	return ctx.Err() == nil
}

// stopPod stops all of the pod, and reports whether that succeeded.
func (s *podSync) stopPod(ctx context.Context) bool {
	begun := time.Now()
	s.trace.begin("KillPod", "")
	err := s.r.stop(ctx, stopRequest{uid: s.pod.UID, pod: s.pod, status: s.status, event: s.event})
	s.done(runtime.Action{Kind: runtime.KillPodSandbox, Target: s.name(), Err: err, Reason: "KillPodSandboxError"}, begun)
	return err == nil
}

// stopContainers stops single instances, and reports whether all of that
// succeeded.
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

// newSandbox creates the pod's sandbox, and reports whether that succeeded and
// containers can go into it.
func (s *podSync) newSandbox(ctx context.Context, p plan.Plan) bool {
	begun := time.Now()
	s.trace.begin("CreatePodSandbox", "")
	if m := s.r.cfg.Providers.Managers; m != nil {
		if err := m.PreparePod(ctx, s.pod); err != nil { // lq-18: it is an error of the sync, too
			s.event(runtime.PodRef(s.pod), v1.EventTypeWarning, "FailedPrepareDynamicResources",
				"Failed to prepare dynamic resources: "+errorMessage(err))
			return s.done(runtime.Action{Kind: runtime.CreatePodSandbox, Target: s.name(), Err: joinContextErr(ctx, err), Reason: "CreatePodSandboxError"}, begun)
		}
	}
	id, err := s.createSandbox(ctx, p)
	if err == nil {
		s.r.checkpoints.update(s.pod, func(rec *podCheckpoint) { rec.Attempts, rec.Pod = p.Attempt+1, podLevel(s.pod) })
	}
	if err != nil && ctx.Err() == nil {
		s.event(runtime.PodRef(s.pod), v1.EventTypeWarning, "FailedCreatePodSandBox", "Failed to create pod sandbox: "+errorMessage(err)) // rt-24
	}
	s.sandbox = id
	if !s.done(runtime.Action{Kind: runtime.CreatePodSandbox, Target: s.name(), Err: joinContextErr(ctx, err), Reason: "CreatePodSandboxError"}, begun) {
		return false
	}
	made, err := s.r.sandboxStatus(ctx, id)
	if err != nil {
		if ctx.Err() == nil {
			s.event(runtime.PodRef(s.pod), v1.EventTypeWarning, "FailedPodSandBoxStatus", "Unable to get pod sandbox status: "+errorMessage(err)) // rt-25
		}
		return s.done(runtime.Action{Kind: runtime.ConfigPodSandbox, Target: s.name(), Err: joinContextErr(ctx, err), Reason: "ConfigPodSandboxError"}, begun)
	}
	s.ips = made.IPs
	return true
}

// configured works out the configuration of the sandbox that is there, which
// creating a container in it needs.
func (s *podSync) configureSandbox(ctx context.Context, p plan.Plan) bool {
	begun := time.Now()
	if err := s.existingSandbox(ctx, p); err != nil {
		return s.done(runtime.Action{Kind: runtime.ConfigPodSandbox, Target: s.name(), Err: joinContextErr(ctx, err), Reason: "ConfigPodSandboxError"}, begun)
	}
	return true
}

// done adds an action to the result, and reports whether it succeeded. An action
// that failed has its error's words for a message unless it has others.
func (s *podSync) done(a runtime.Action, begun time.Time) bool {
	if a.Err == nil {
		a.Reason, a.Message = "", ""
	} else if a.Message == "" {
		a.Message = errorMessage(a.Err)
	}
	a.Message = bounded(a.Message, maxErrorBytes)
	s.result.Actions = append(s.result.Actions, a)
	if s.r.cfg.Hooks.Acted != nil {
		info := ActInfo{Pod: s.pod, Action: a, Duration: time.Since(begun)}
		if a.Kind == runtime.CreatePodSandbox {
			info.Handler, _ = s.handlerName() // its error is the action's
		}
		s.r.cfg.Hooks.Acted(info)
	}
	return a.Err == nil
}

// retryAt notes when something that was put off may be tried again.
func (s *podSync) retryAt(at time.Time) {
	if s.result.RetryAt.IsZero() || at.Before(s.result.RetryAt) {
		s.result.RetryAt = at
	}
}

// name is how the kubelet's results name a pod.
func (s *podSync) name() string { return s.pod.Name + "_" + s.pod.Namespace }

func (s *podSync) event(ref v1.ObjectReference, eventType, reason, message string) {
	s.r.cfg.Record(runtime.Event{Object: ref, Type: eventType, Reason: reason, Message: message})
}
