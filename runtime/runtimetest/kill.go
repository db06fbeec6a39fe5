package runtimetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// Exit codes of containers that are terminated by a signal: 128 plus its number.
const (
	exitTERM = 143
	exitKILL = 137
)

// KillPod stops the pod: SIGTERM, the grace period, SIGKILL, then the sandboxes.
// Sidecars get SIGTERM after the regular containers, the last one first. If ctx
// is done, SIGTERM has been sent and SIGKILL is not sent; the next call starts a
// grace period of its own. See [runtime.Runtime].
func (r *Runtime) KillPod(ctx context.Context, req runtime.KillRequest) error {
	if req.UID == "" {
		return errors.New("runtimetest: kill pod: KillRequest.UID is empty")
	}
	return r.call(ctx, "KillPod", req.UID, func() error {
		for {
			victims, grace := r.killing(req)
			if len(victims) == 0 {
				return nil
			}
			if err := r.stop(ctx, victims, grace); err != nil {
				return fmt.Errorf("runtimetest: kill pod %s: %w", req.UID, err)
			}
		}
	})
}

// killing returns the live containers of the pod and the grace period. If
// there are none, it stops the sandboxes under the same lock, so that no
// container can be started before KillPod returns.
func (r *Runtime) killing(req runtime.KillRequest) ([]*instance, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[req.UID]
	if p == nil {
		return nil, 0
	}
	victims := liveOf(p)
	if len(victims) == 0 {
		r.stopSandboxesLocked(p)
	}
	return victims, graceOf(req, p.grace)
}

// liveOf returns the instances of p that run or whose start is queued.
func liveOf(p *pod) []*instance {
	var out []*instance
	for _, v := range p.containers {
		if v.status.State != runtime.ContainerExited {
			out = append(out, v)
		}
	}
	return out
}

// graceOf returns the grace period of a kill; recorded is the grace period of the
// last start, or nil.
func graceOf(req runtime.KillRequest, recorded *int64) time.Duration {
	seconds := new(int64(2))
	switch {
	case req.GracePeriodSeconds != nil:
		seconds = req.GracePeriodSeconds
	case req.Pod != nil && req.Pod.DeletionGracePeriodSeconds != nil:
		seconds = req.Pod.DeletionGracePeriodSeconds
	case req.Pod != nil && req.Pod.Spec.TerminationGracePeriodSeconds != nil:
		seconds = req.Pod.Spec.TerminationGracePeriodSeconds
	case recorded != nil:
		seconds = recorded
	}
	const most = 1 << 33 // seconds; 272 years, about the longest Duration
	return time.Duration(min(max(*seconds, 0), most)) * time.Second
}

// stop stops the victims. It returns when none of them runs, or with ctx's
// error.
func (r *Runtime) stop(ctx context.Context, victims []*instance, grace time.Duration) error {
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	victims = slices.SortedStableFunc(slices.Values(victims), func(a, b *instance) int { return cmp.Compare(a.turn, b.turn) })
	for i, v := range victims {
		if grace > 0 && (i == 0 || v.turn > victims[i-1].turn) {
			r.term(victims[i:], v.turn)
		}
		select {
		case <-v.done:
			continue
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, v := range victims[i:] {
			r.exitLocked(v, exitKILL, "")
		}
		return nil
	}
	return nil
}

// term sends SIGTERM to the victims with the given turn.
func (r *Runtime) term(victims []*instance, turn int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range victims {
		switch {
		case v.turn != turn || v.status.State == runtime.ContainerExited:
		case v.status.State == runtime.ContainerCreated: // nothing runs that could handle a signal
			r.exitLocked(v, exitKILL, "")
		case v.stubborn:
		case v.behavior.StopDelay <= 0:
			r.exitLocked(v, cmp.Or(v.behavior.StopCode, exitTERM), "")
		case !v.stopping:
			v.stopping = true
			if v.timer != nil {
				v.timer.Stop()
			}
			r.exitLaterLocked(v, v.behavior.StopDelay, cmp.Or(v.behavior.StopCode, exitTERM), "")
		}
	}
}
