package cri

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/restart"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// Grace periods in seconds.
const (
	unknownGrace = 2 // of a container of which nothing says how long it may take (rt-108)
	leastGrace   = 2 // that is left of a longer one for TERM, whatever the hook took (rt-112)

	// mostGrace is as good as for ever, and not too long for a time.Duration.
	mostGrace = math.MaxInt32
)

// KillPod implements [runtime.Syncer] (sections 4.13 … 4.15).
func (r *Runtime) KillPod(ctx context.Context, req runtime.KillRequest) error {
	if req.UID == "" {
		return errors.New("cri: KillRequest.UID is empty")
	}
	status := req.Status
	if status == nil {
		var err error
		if status, err = r.PodStatus(ctx, req.UID); err != nil {
			return err
		}
	}
	if err := r.stop(ctx, stopRequest{uid: req.UID, pod: req.Pod, status: status, override: req.GracePeriodSeconds, event: r.record}); err != nil {
		return err
	}
	if req.Pod == nil || req.Pod.DeletionTimestamp != nil {
		r.backoff.Forget(req.UID)
		r.images.Forget(req.UID)
	}
	return nil
}

// settling is for how long a runtime may still show what it said it has stopped:
// containerd 2 answers StopPodSandbox a moment before its list knows of the end.
const stopDelay = 2 * time.Second

// nothingRuns looks again: a success that left something running is none
// (sl-43).
func (r *Runtime) verifyStopped(ctx context.Context, uid types.UID) error {
	end := time.Now().Add(stopDelay)
	for pause := 5 * time.Millisecond; ; pause *= 2 {
		sandboxes, containers, err := r.list(ctx, uid)
		if err != nil {
			return err
		}
		left := stillRuns(sandboxes, containers)
		if left == nil || time.Now().Add(pause).After(end) {
			return left
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stillRuns names what runs although all has been stopped, if anything does.
func stillRuns(sandboxes []*runtimeapi.PodSandbox, containers []*runtimeapi.Container) error {
	for _, c := range containers {
		if containerState(c.State) == runtime.ContainerRunning {
			return fmt.Errorf("cri: detected running containers after a successful KillPod, CRI violation: %s (%s)", c.Metadata.Name, c.Id)
		}
	}
	for _, s := range sandboxes {
		if sandboxState(s.State) == runtime.SandboxReady {
			return fmt.Errorf("cri: detected a ready sandbox after a successful KillPod, CRI violation: %s", s.Id)
		}
	}
	return nil
}

func (r *Runtime) record(ref v1.ObjectReference, eventType, reason, message string) {
	r.cfg.Record(runtime.Event{Object: ref, Type: eventType, Reason: reason, Message: message})
}

// An eventFunc records an event.
type eventFunc func(ref v1.ObjectReference, eventType, reason, message string)

// A stopRequest says which pod to stop. A nil pod is restored from what the
// runtime recorded of it.
type stopRequest struct {
	uid      types.UID
	pod      *v1.Pod
	status   *runtime.PodStatus
	override *int64
	event    eventFunc
}

// stop stops every container of the pod at the same time, sidecars after the
// others (rt-115 … rt-120), and then its sandboxes (rt-121). When it returns nil
// the runtime shows nothing of the pod that runs: an old sandbox that still looks
// ready would condemn the one made after it.
func (r *Runtime) stop(ctx context.Context, req stopRequest) error {
	var running []*runtime.ContainerStatus
	for i := range req.status.Containers {
		c := &req.status.Containers[i]
		if c.State == runtime.ContainerRunning || c.State == runtime.ContainerUnknown {
			running = append(running, c)
		}
	}
	order := newStopOrder(req.pod, running)
	errs := make([]error, len(running), len(running)+len(req.status.Sandboxes))
	var wg sync.WaitGroup
	for i, c := range running {
		wg.Go(func() {
			errs[i] = r.stopOne(ctx, target{
				pod: req.pod, id: c.ID, name: c.Name, override: req.override, ips: req.status.IPs,
				event: req.event, wait: func(ctx context.Context, deadline time.Time) { order.await(ctx, c.Name, deadline) },
			})
			if errs[i] == nil {
				order.finished(c.Name)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return errors.Join(ctx.Err(), err)
	}
	// A container that could not be stopped does not keep the sandbox up
	// (rt-122): stopping that ends what is in it.
	for _, sb := range req.status.Sandboxes { // also those that are not ready: they may hold a network
		if err := r.cfg.Runtime.StopPodSandbox(r.quiet(ctx), sb.ID); err != nil && !isNotFound(err) {
			errs = append(errs, fmt.Errorf("cri: stop sandbox %s: %w", sb.ID, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return r.verifyStopped(ctx, req.uid)
}

// A target is one instance to stop.
type target struct {
	pod      *v1.Pod // nil: restored from what the runtime recorded
	spec     *v1.Container
	id       string // as seen above the runtime
	name     string
	message  string // of the event; "" is the usual one
	grace    *int64 // of the probe that condemned it, in seconds; nil: the pod's (rt-108)
	override *int64
	ips      []string // of the pod, for hooks
	event    eventFunc

	// wait, if set, holds the TERM back until it is the container's turn, or
	// the deadline.
	wait func(ctx context.Context, deadline time.Time)
}

// stopOne stops one instance (section 4.13): event, preStop hook, turn, TERM,
// and KILL when its grace has run out. All of that has one deadline (L-19).
func (r *Runtime) stopOne(ctx context.Context, t target) error {
	if t.spec == nil && t.pod != nil {
		t.spec = containerSpec(t.pod, t.name)
	}
	if t.spec == nil {
		if err := r.restore(ctx, &t); err != nil {
			if isNotFound(err) {
				return nil
			}
			return err
		}
	}
	grace := graceOf(t.pod, t.grace)
	if t.override != nil {
		grace = *t.override // rt-110
	}
	message := t.message
	if message == "" {
		message = "Stopping container " + t.name
	}
	t.event(runtime.ContainerRef(t.pod, t.name), v1.EventTypeNormal, "Killing", message)
	deadline := time.Now().Add(time.Duration(min(grace, mostGrace)) * time.Second)
	if grace > 0 {
		r.preStop(ctx, t, deadline) // rt-105
	}
	if t.wait != nil {
		t.wait(ctx, deadline)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for {
		left := max(int64(math.Ceil(time.Until(deadline).Seconds())), minTermGrace(grace))
		err := r.cfg.Runtime.StopContainer(r.quiet(ctx), bare(t.id), left)
		if err == nil || isNotFound(err) {
			return nil
		}
		if !errors.Is(err, runtime.ErrUnavailable) || !pause(ctx, deadline) {
			return fmt.Errorf("cri: stop container %s: %w", t.name, err)
		}
	}
}

// minTermGrace returns the least number of seconds between TERM and KILL, for a grace
// period that a hook or the wait for other containers may have used up (rule rt-112).
func minTermGrace(grace int64) int64 { return min(max(grace, 0), leastGrace) }

// askAgain is how long after it did not answer a runtime is asked again to stop a
// container, within its grace: who gave up at once would have the container killed
// with its sandbox by the time the runtime is back, without ever a TERM.
const stopRetryPeriod = time.Second / 2

// pause waits for askAgain, and reports whether that ended before the deadline and
// ctx did.
func pause(ctx context.Context, deadline time.Time) bool {
	if !time.Now().Add(stopRetryPeriod).Before(deadline) {
		return false
	}
	timer := time.NewTimer(stopRetryPeriod)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// graceOf returns how long a container of pod may take to stop, in seconds; own
// is that of the probe that condemned it, or nil (rt-108, rt-109).
func graceOf(pod *v1.Pod, own *int64) int64 {
	switch {
	case pod.DeletionGracePeriodSeconds != nil:
		return *pod.DeletionGracePeriodSeconds
	case own != nil:
		return *own
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	default:
		return unknownGrace
	}
}

// restore fills in what is needed to stop a container of which the spec says
// nothing, from what the runtime recorded when it was created (rt-107): its pod
// is an orphan, or the pod's spec has it no more.
func (r *Runtime) restore(ctx context.Context, t *target) error {
	s, err := r.containerStatus(ctx, bare(t.id))
	if err != nil {
		return err
	}
	t.spec = &v1.Container{Name: t.name, Ports: podconfig.PortsOf(s.Annotations)}
	if hook := podconfig.PreStopOf(s.Annotations); hook != nil {
		t.spec.Lifecycle = &v1.Lifecycle{PreStop: hook}
	}
	if t.pod != nil {
		return nil
	}
	t.pod = &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Labels[podconfig.LabelPodName], Namespace: s.Labels[podconfig.LabelPodNamespace], UID: types.UID(s.Labels[podconfig.LabelPodUID]),
			DeletionGracePeriodSeconds: podconfig.SecondsOf(s.Annotations, podconfig.AnnotationDeletionGrace),
		},
		Spec: v1.PodSpec{
			TerminationGracePeriodSeconds: podconfig.SecondsOf(s.Annotations, podconfig.AnnotationTerminationGrace),
			Containers:                    []v1.Container{*t.spec},
		},
	}
	return nil
}

// A stopOrder lets sidecars wait for all regular containers, and for the
// sidecars that started after them (rt-116).
type stopOrder struct {
	after map[string][]string      // whom a sidecar waits for
	done  map[string]chan struct{} // closed when no instance of the container is left

	mu   sync.Mutex
	left map[string]int // instances that have not stopped yet; guarded by mu
}

func newStopOrder(pod *v1.Pod, running []*runtime.ContainerStatus) *stopOrder {
	o := &stopOrder{after: map[string][]string{}, done: map[string]chan struct{}{}, left: map[string]int{}}
	for _, c := range running {
		if o.left[c.Name]++; o.left[c.Name] == 1 {
			o.done[c.Name] = make(chan struct{})
		}
	}
	if pod == nil {
		return o
	}
	var later []string
	for i := range pod.Spec.Containers {
		later = append(later, pod.Spec.Containers[i].Name)
	}
	for i := len(pod.Spec.InitContainers) - 1; i >= 0; i-- {
		if c := &pod.Spec.InitContainers[i]; restart.Sidecar(c) {
			o.after[c.Name] = slices.Clone(later)
			later = append(later, c.Name)
		}
	}
	return o
}

// await returns when it is the container's turn, at the deadline, or when ctx
// ends. What was not running counts as stopped (rt-117).
func (o *stopOrder) await(ctx context.Context, name string, deadline time.Time) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for _, other := range o.after[name] {
		done, ok := o.done[other]
		if !ok {
			continue
		}
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// finished tells that one instance of the container has stopped.
func (o *stopOrder) finished(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left[name]--; o.left[name] == 0 {
		close(o.done[name])
	}
}
