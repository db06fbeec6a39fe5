package pipeline

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// Reason and message of a pod that exceeded its deadline (rule sl-62).
const (
	deadlineReason  = "DeadlineExceeded"
	deadlineMessage = "Pod was active on the node longer than the specified deadline"
)

// pastDeadline reports whether the pod has exceeded its activeDeadlineSeconds, and the time of
// the deadline; zero if it has none.
func pastDeadline(pod *v1.Pod, status v1.PodStatus, now time.Time) (late bool, at time.Time) {
	if pod.Spec.ActiveDeadlineSeconds == nil || status.StartTime == nil {
		return false, time.Time{}
	}
	at = status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
	return !now.Before(at), at
}

// earlier returns the earlier of two times. Zero means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// errDeadline is the cause of the cancellation of a Sync by the deadline of its pod.
var errDeadline = errors.New("pipeline: the pod exceeded its active deadline")

// An activeSync is a Sync in progress. It is canceled at the deadline of its pod, because it may
// take as long as an image pull or a postStart hook.
type activeSync struct {
	start  time.Time   // of the pod, as far as it is known
	timer  *time.Timer // nil: the pod has no deadline
	cancel context.CancelCauseFunc
}

// arm sets the timer for the deadline of pod, which may have changed.
func (s *activeSync) arm(pod *v1.Pod) {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if _, at := pastDeadline(pod, startedAt(s.start), time.Now()); !at.IsZero() {
		s.timer = time.AfterFunc(time.Until(at), func() { s.cancel(errDeadline) })
	}
}

// startedAt returns a status with this start time.
func startedAt(at time.Time) v1.PodStatus {
	return v1.PodStatus{StartTime: new(metav1.NewTime(at))}
}

// beginDeadline returns a context for a Sync of pod that is canceled at the pod's deadline. Until
// setStart is called, a pod without a start time counts as started now. end must be called.
func (p *Pipeline) beginDeadline(ctx context.Context, pod *v1.Pod) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &activeSync{start: time.Now(), cancel: cancel}
	if at := pod.Status.StartTime; at != nil {
		s.start = at.Time
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.arm(pod)
	p.syncs[pod.UID] = s
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if s.timer != nil {
			s.timer.Stop()
		}
		delete(p.syncs, pod.UID)
		cancel(nil)
	}
}

// setStart sets the start time of a pod for which Sync is in progress.
func (p *Pipeline) setStart(pod *v1.Pod, status v1.PodStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.syncs[pod.UID]; s != nil && status.StartTime != nil {
		s.start = status.StartTime.Time
		s.arm(pod)
	}
}

// Updated is an optional method of [podworker.Handler]. It applies a changed activeDeadlineSeconds to the Sync in
// progress for the pod, if there is one.
func (p *Pipeline) Updated(pod *v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.syncs[pod.UID]; s != nil {
		s.arm(pod)
	}
}

// exceeded fails a pod whose deadline has passed.
func (p *Pipeline) exceeded(pod *v1.Pod, observed *runtime.PodStatus) podworker.SyncResult {
	termination := runtime.Termination{Failed: true, Reason: deadlineReason, Message: deadlineMessage}
	p.report(pod, observed, termination)
	p.event(pod, v1.EventTypeNormal, deadlineReason, deadlineMessage)
	return podworker.SyncResult{Terminal: true, Termination: termination}
}
