package podworker

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
)

// A Snapshot describes the worker of a pod at one moment: its state, the current step, why
// that has not been completed, and when it is retried.
type Snapshot struct {
	At        time.Time `json:"at"` // when the snapshot was taken
	UID       types.UID `json:"uid"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`

	State State     `json:"state"`
	Added time.Time `json:"added"` // when the worker was created
	Since time.Time `json:"since"` // when State began

	// Step is the current activity of the worker as a verb phrase: "mount volumes", "wait
	// for other pods to terminate". Empty: the worker is idle until Next.
	Step      string    `json:"step,omitempty"`
	StepSince time.Time `json:"stepSince,omitzero"`

	// BlockedBy lists the pods whose termination the worker waits for: pods that are
	// preempted, or a static pod of the same name.
	BlockedBy []types.UID `json:"blockedBy,omitempty"`

	// Err is why Step has not been completed, or the error of the last call. Failures is
	// the number of consecutive failed calls.
	Err      string `json:"err,omitempty"`
	Failures int    `json:"failures,omitempty"`

	// Next is when Step is retried or the next call is made, if nothing changes before.
	// Zero: when something changes.
	Next time.Time `json:"next,omitzero"`

	// Termination describes the request to terminate the pod; nil: there is none.
	Termination *TerminationRequest `json:"termination,omitempty"`

	// Restart: a source has added the pod again while it was terminating. It starts
	// again after it has finished.
	Restart bool `json:"restart,omitempty"`
}

// A TerminationRequest describes why and when the termination of a pod was requested.
type TerminationRequest struct {
	// Cause is the first cause: "deleted" (the object has a deletionTimestamp), "removed"
	// (no source specifies the pod), "terminal" (completed, rejected, or past its
	// deadline), "killed" ([Workers.Kill]) or "orphaned" (only the runtime reports it).
	Cause string    `json:"cause"`
	At    time.Time `json:"at"`

	// Reason and Message of the pod's status; empty: none were passed.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`

	// GracePeriodSeconds is the grace period; nil: the one that the runtime recorded for
	// an orphan.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
}

// Steps of a worker outside of calls of the Handler.
const (
	stepQueued  = "wait for a free worker"
	stepObserve = "observe the pod"
	stepBlocked = "wait for other pods to terminate"
	stepSources = "wait for sources to sync"
)

// Snapshot returns a snapshot of the pod's worker; false if there is none. It does not
// block.
func (w *Workers) Snapshot(uid types.UID) (Snapshot, bool) {
	s, inCall, ok := w.snapshot(uid)
	if h, reports := compose.As[ProgressReporter](w.cfg.Handler); reports && inCall {
		if p := h.Progress(uid); p.Step != "" {
			s.Step, s.StepSince = p.Step, p.Since
			if p.Err != "" {
				s.Err, s.Next = p.Err, p.RetryAt
			}
		}
	}
	return s, ok
}

// snapshot also reports whether a call of the Handler is in progress.
func (w *Workers) snapshot(uid types.UID) (s Snapshot, inCall, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pods[uid]
	if !ok {
		return Snapshot{}, false, false
	}
	l := p.lifecycle
	s = Snapshot{
		At: time.Now(), UID: uid, State: l.state, Added: p.added, Since: p.since,
		Failures: p.failures, Restart: l.restart != nil && l.restart.kill == nil,
	}
	switch {
	case l.pod != nil:
		s.Namespace, s.Name = l.pod.Namespace, l.pod.Name
	case l.orphan != nil:
		s.Namespace, s.Name = l.orphan.Namespace, l.orphan.Name
	}
	if p.err != nil {
		s.Err = p.err.Error()
	}
	if l.cause != "" {
		s.Termination = &TerminationRequest{
			Cause: string(l.cause), At: p.requested, Reason: l.termination.Reason, Message: l.termination.Message,
			GracePeriodSeconds: l.grace,
		}
	}
	w.snapshotStepLocked(&s, p)
	return s, p.running && p.observed.Load(), true
}

// snapshotStepLocked sets the current step of p and when it is retried.
func (w *Workers) snapshotStepLocked(s *Snapshot, p *worker) {
	switch {
	case p.running && !p.observed.Load():
		s.Step, s.StepSince = stepObserve, p.began
	case p.running:
		s.Step, s.StepSince = strings.ToLower(p.calling.String()), p.began
	case s.State == Finished:
	case s.State == Waiting && !w.names.isFirst(p.static, p.uid):
		s.Step, s.StepSince = stepBlocked, p.added
		s.BlockedBy = []types.UID{w.names.first(p.static)}
	case p.queued:
		s.Step, s.StepSince = stepQueued, p.due
	default:
		s.Next = p.next
		if other, ok := p.err.(*nameInUseError); ok {
			s.BlockedBy = []types.UID{other.uid}
		} else if len(p.victims) > 0 {
			s.BlockedBy = slices.Sorted(maps.Keys(p.victims))
		}
		if s.BlockedBy != nil {
			s.Step, s.StepSince = stepBlocked, p.called
		}
	}
}

// Snapshot returns a snapshot of the pod's worker. It also describes a pod that only the
// runtime reports and whose source has not synced. It returns false if the pod is not
// known. It does not block.
func (l *Loop) Snapshot(uid types.UID) (Snapshot, bool) {
	uid = l.table.translateUID(uid)
	if s, ok := l.cfg.Workers.Snapshot(uid); ok {
		return s, true
	}
	for _, pod := range l.cfg.Workers.cfg.StatusCache.Pods() {
		if pod.UID != uid {
			continue
		}
		unsynced := l.table.Unsynced()
		s := Snapshot{
			At: time.Now(), UID: uid, Namespace: pod.Namespace, Name: pod.Name,
			State: Finished, Added: pod.CreatedAt, Since: pod.CreatedAt, // its containers have terminated
		}
		if len(unsynced) > 0 {
			s.State, s.Step, s.StepSince = Syncing, stepSources, pod.CreatedAt
			s.Err = "not synced: " + strings.Join(unsynced, ", ")
		}
		return s, true
	}
	return Snapshot{}, false
}
