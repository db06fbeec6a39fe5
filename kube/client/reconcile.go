package client

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/staticpod"
)

// repairs is how many statuses Run writes at a time.
const repairs = 4

// Run watches what the API server holds and writes what differs from what was
// said last, until ctx ends: of mirror pods that came (again), and of pods whose
// status somebody else has changed (st-71). It returns after its calls have.
func (s *Statuses) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		changed := s.cfg.Pods.next()
		next := s.Reconcile(ctx)
		var later <-chan time.Time
		if !next.IsZero() {
			later = time.After(time.Until(next))
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-s.dirty:
		case <-later:
		}
	}
	return nil
}

// Reconcile looks once at what the API server holds, as far as it is known, and
// writes what is due. It returns when it wants to be called again though nothing
// changes; zero: not.
func (s *Statuses) Reconcile(ctx context.Context) (next time.Time) {
	if s.cfg.Repair < 0 || !s.cfg.Pods.Synced() {
		return time.Time{}
	}
	s.mu.Lock()
	uids := slices.Sorted(maps.Keys(s.pods))
	s.mu.Unlock()

	var wg sync.WaitGroup
	defer wg.Wait()
	limit := make(chan struct{}, repairs)
	for _, uid := range uids {
		e := s.idle(uid)
		if e == nil {
			continue
		}
		due, at := s.due(e, time.Now())
		if !due {
			s.release(e)
			if !at.IsZero() && (next.IsZero() || at.Before(next)) {
				next = at
			}
			continue
		}
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			defer s.release(e)
			s.repair(ctx, e)
			s.wake() // when to look again is seen in the next round
		})
	}
	return next
}

// idle returns the entry if nobody uses it; those who do write anyway.
func (s *Statuses) idle(uid types.UID) *saidPod {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.pods[uid]
	if e == nil {
		return nil
	}
	select {
	case <-e.turn:
	default:
		return nil
	}
	if e.over || e.pod == nil {
		e.turn <- struct{}{}
		return nil
	}
	return e
}

// due reports whether the API server holds something else than what was said,
// as far as Run has to do with it, or when to look again.
func (s *Statuses) due(e *saidPod, now time.Time) (due bool, at time.Time) {
	object := s.target(e)
	if object == nil || e.theirs {
		return false, time.Time{}
	}
	seen := lookedAt{object.UID, object.ResourceVersion}
	if seen == e.looked && !e.mine || object == e.there {
		return false, time.Time{} // compared before, or our own answer
	}
	said := e.cut.of(&e.status)
	next := merge(&object.Status, &said, staticpod.Is(e.pod), now)
	if data, err := patch(object.UID, &object.Status, &next); err != nil || data == nil {
		e.looked, e.mine, e.failures = seen, false, 0
		return false, time.Time{}
	}
	if now.Before(e.notUntil) && (e.failures > 0 || e.repaired == object.UID) { // a new mirror pod waits for nothing
		return false, e.notUntil
	}
	return true, time.Time{}
}

// repair writes an entry that is due.
func (s *Statuses) repair(ctx context.Context, e *saidPod) {
	if object := s.target(e); object != nil {
		e.repaired = object.UID
	}
	err := s.write(ctx, e)
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	if err == nil {
		e.mine, e.failures, e.notUntil = false, 0, now.Add(s.cfg.Repair)
		return
	}
	e.mine = true
	e.failures++
	e.notUntil = now.Add(backoff(time.Second, time.Minute, e.failures))
	s.cfg.Logger.Warn("status, will be tried again", "pod", e.pod.Namespace+"/"+e.pod.Name, "uid", e.pod.UID, "err", err)
}

// wake lets Run look again.
func (s *Statuses) wake() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}
