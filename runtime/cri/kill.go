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

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// Grace periods in seconds.
const (
	unknownGrace = 2 // if neither the pod nor the container specifies one (rule rt-108)
	leastGrace   = 2 // between TERM and KILL, whatever the hook took (rule rt-112)

	// mostGrace is the maximum; more would overflow a time.Duration.
	mostGrace = math.MaxInt32
)

// KillPod implements [runtime.Runtime].
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
	// A static pod whose manifest is created again has the same UID and dead containers,
	// which have not crashed. CollectGarbage deletes the entry.
	r.backoff.Reset(req.UID, "", time.Now())
	if req.Pod == nil || req.Pod.DeletionTimestamp != nil {
		r.images.Forget(req.UID)
	}
	return nil
}

// stopDelay is how long a runtime may still list a stopped container as running:
// containerd 2 returns from StopPodSandbox before it updates its list.
const stopDelay = 2 * time.Second

// verifyStopped lists the pod again and returns an error if a container or sandbox still
// runs.
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

// stillRuns returns an error that names a running container or sandbox; nil if there is
// none.
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

// A stopRequest specifies the pod to stop. A nil pod is restored from the annotations in
// the runtime.
type stopRequest struct {
	uid      types.UID
	pod      *v1.Pod
	status   *runtime.PodStatus
	override *int64
	event    eventFunc
}

// stop stops all containers of the pod in parallel, sidecars after the others, and then
// its sandboxes. When it returns nil, the runtime lists nothing of the pod as running: an
// old sandbox that is listed as ready would make the next plan replace the new one.
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
	// The sandbox is stopped even if a container could not be stopped: that stops the
	// container too.
	for _, sb := range req.status.Sandboxes { // also if not ready: it may have network resources
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
	pod      *v1.Pod // nil: restored from the annotations in the runtime
	spec     *v1.Container
	id       string // with prefix
	name     string
	message  string // of the event; "" is the default
	grace    *int64 // of the probe that failed, in seconds; nil: the pod's
	override *int64
	ips      []string // of the pod, for hooks
	event    eventFunc

	// wait, if not nil, blocks until the container may be stopped, or the deadline.
	wait func(ctx context.Context, deadline time.Time)
}

// stopOne stops one instance: event, preStop hook, wait for other containers, TERM, and
// KILL at the end of the grace period. All of them share one deadline.
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
		grace = *t.override
	}
	message := t.message
	if message == "" {
		message = "Stopping container " + t.name
	}
	t.event(runtime.ContainerRef(t.pod, t.name), v1.EventTypeNormal, "Killing", message)
	deadline := time.Now().Add(time.Duration(min(grace, mostGrace)) * time.Second)
	if grace > 0 {
		defer r.preStop(ctx, t, deadline)()
	}
	if t.wait != nil {
		t.wait(ctx, deadline)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for {
		left := max(int64(math.Ceil(time.Until(deadline).Seconds())), minTermGrace(grace))
		err := r.cfg.Runtime.StopContainer(r.quiet(ctx), runtimeID(t.id), left)
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

// stopRetryPeriod is the delay between attempts to stop a container while the runtime is
// unavailable, within the grace period. Without these attempts the container would later
// be killed with its sandbox, without a TERM.
const stopRetryPeriod = time.Second / 2

// pause waits for stopRetryPeriod. It returns false if that exceeds the deadline or ctx is
// done.
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

// graceOf returns the grace period of a container in seconds. own is the one of the probe
// that failed, or nil.
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

// restore restores the spec of a container that is not in the pod's spec, or whose pod is
// orphaned, from the annotations written at its creation.
func (r *Runtime) restore(ctx context.Context, t *target) error {
	s, err := r.containerStatus(ctx, runtimeID(t.id))
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

// A stopOrder makes sidecars wait for all regular containers and for the sidecars that
// started after them (rule rt-116).
type stopOrder struct {
	after map[string][]string      // the containers a sidecar waits for
	done  map[string]chan struct{} // closed when all instances of the container have stopped

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
		if c := &pod.Spec.InitContainers[i]; podspec.IsSidecar(c) {
			o.after[c.Name] = slices.Clone(later)
			later = append(later, c.Name)
		}
	}
	return o
}

// await blocks until the container may be stopped, the deadline, or ctx is done.
// Containers that were not running count as stopped.
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

// finished records that one instance of the container has stopped.
func (o *stopOrder) finished(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left[name]--; o.left[name] == 0 {
		close(o.done[name])
	}
}
