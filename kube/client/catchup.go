package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// writers is the number of statuses that Run writes concurrently.
const writers = 4

// Run writes the last status of each static pod to its mirror pod when that is created,
// until ctx is done. It returns nil after its requests have returned; an error if it was
// called before.
func (s *Statuses) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("client: Statuses.Run was called before")
	}
	for ctx.Err() == nil {
		changed := s.cfg.Pods.next()
		s.dropResponses()
		next := s.catchUpAll(ctx)
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

// catchUpAll writes the last status of each static pod to a mirror pod that does not have
// it. It returns the time of the next retry; zero if there is none.
func (s *Statuses) catchUpAll(ctx context.Context) (next time.Time) {
	if !s.cfg.Pods.Synced() {
		return time.Time{}
	}
	var uids []types.UID
	s.mu.Lock()
	for uid, e := range s.pods {
		if e.static {
			uids = append(uids, uid)
		}
	}
	s.mu.Unlock()
	slices.Sort(uids)

	var wg sync.WaitGroup
	defer wg.Wait()
	limit := make(chan struct{}, writers)
	for _, uid := range uids {
		e := s.idle(uid)
		if e == nil {
			continue
		}
		if !s.due(e) {
			s.release(e)
			continue
		}
		if e.failures > 0 && time.Now().Before(e.notUntil) {
			if next.IsZero() || e.notUntil.Before(next) {
				next = e.notUntil
			}
			s.release(e)
			continue
		}
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			defer s.release(e)
			s.catchUp(ctx, e)
			s.wake() // the next call computes the time of retries
		})
	}
	return next
}

// idle returns the entry of a pod and locks it, unless it is in use: its user writes the
// status.
func (s *Statuses) idle(uid types.UID) *podStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.pods[uid]
	if e == nil {
		return nil
	}
	select {
	case <-e.lock:
	default:
		return nil
	}
	if e.deleted || e.pod == nil {
		e.lock <- struct{}{}
		return nil
	}
	return e
}

// due reports whether the mirror pod of a static pod has no status of this process. Later differences are
// written by status.Manager.Reconcile (rule st-71), and failed writes are retried by their
// caller.
func (s *Statuses) due(e *podStatus) bool {
	if e.callerRetries {
		return false
	}
	mirror := s.target(e)
	return mirror != nil && mirror.UID != e.written
}

// catchUp writes the status of one pod, with backoff.
func (s *Statuses) catchUp(ctx context.Context, e *podStatus) {
	err := s.write(ctx, e)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		e.failures = 0
		return
	}
	e.failures++
	e.notUntil = time.Now().Add(backoff(time.Second, time.Minute, e.failures))
	s.cfg.Logger.Warn("Failed to write status of mirror pod; will retry", "pod", e.pod.Namespace+"/"+e.pod.Name, "podUID", e.pod.UID, "err", err)
}

// wake causes Run to call catchUpAll.
func (s *Statuses) wake() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}
