package pipeline

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// Reason and message of a pod that exceeded its deadline (rule sl-62).
const (
	deadlineReason  = "DeadlineExceeded"
	deadlineMessage = "Pod was active on the node longer than the specified deadline"
)

// deadlineOf returns when a pod that started at start exceeds its activeDeadlineSeconds; zero if it
// has none.
func deadlineOf(pod *v1.Pod, start time.Time) time.Time {
	if pod.Spec.ActiveDeadlineSeconds == nil {
		return time.Time{}
	}
	return start.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
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

// armLocked sets the timer that cancels c at the deadline of pod, which may have changed. A Sync may
// take as long as an image pull or a postStart hook.
func (c *call) armLocked(pod *v1.Pod) {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if at := deadlineOf(pod, c.start); !at.IsZero() {
		c.timer = time.AfterFunc(time.Until(at), func() { c.cancel(errDeadline) })
	}
}

// beginDeadline returns a context for a Sync that is canceled at the pod's deadline. Until
// checkDeadline is called, a pod without a start time counts as started now. end must be called.
func (p *Pipeline) beginDeadline(ctx context.Context, c *call) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	c.cancel, c.start = cancel, time.Now()
	if at := c.desired.Status.StartTime; at != nil {
		c.start = at.Time
	}
	c.armLocked(c.desired)
	p.active[c.UID] = c
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if c.timer != nil {
			c.timer.Stop()
		}
		cancel(nil)
	}
}

// checkDeadline takes the start time of the pod from its reported status. It fails the pod if its
// deadline has passed; otherwise the next Sync is due at the deadline.
func (p *Pipeline) checkDeadline(c *call, status v1.PodStatus) {
	if status.StartTime == nil {
		return
	}
	p.mu.Lock()
	c.start = status.StartTime.Time
	c.armLocked(c.Pod)
	p.mu.Unlock()
	if c.result.NextSync = deadlineOf(c.Pod, status.StartTime.Time); !c.result.NextSync.IsZero() && !time.Now().Before(c.result.NextSync) {
		p.exceed(c)
	}
}

// Updated implements [podworker.Updater]. It applies a changed activeDeadlineSeconds to the Sync in
// progress for the pod, if there is one.
func (p *Pipeline) Updated(pod *v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.active[pod.UID]; c != nil && c.cancel != nil {
		c.armLocked(pod)
	}
}

// exceed fails a pod whose deadline has passed. If SyncPod was canceled, Terminate reports it: a status
// from before SyncPod, in which all containers have exited, would be a terminal one, while the container
// that has replaced one of them runs (rule st-77).
func (p *Pipeline) exceed(c *call) {
	termination := runtime.Termination{Failed: true, Reason: deadlineReason, Message: deadlineMessage}
	c.end(podworker.SyncResult{Terminal: true, Termination: termination})
	if !c.synced {
		p.report(c.Pod, c.Status, termination)
	}
	p.event(c.Pod, v1.EventTypeNormal, deadlineReason, deadlineMessage)
}
