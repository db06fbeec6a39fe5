package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// writers is how many statuses Run writes at a time.
const writers = 4

// Run waits for mirror pods, and writes the status that was said last into each
// that comes, or is made anew, until ctx ends. It returns after its calls have. A
// second call returns an error.
func (s *Statuses) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("client: Statuses.Run was called before")
	}
	for ctx.Err() == nil {
		changed := s.cfg.Pods.next()
		next := s.Catch(ctx)
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

// Catch looks once for mirror pods that were told nothing yet, as far as is known
// of the API server, and writes what is due. It is the step under Run. It returns
// when it wants to be called again though nothing changes; zero: not.
func (s *Statuses) Catch(ctx context.Context) (next time.Time) {
	if !s.cfg.Pods.Synced() {
		return time.Time{}
	}
	s.mu.Lock()
	uids := slices.Sorted(maps.Keys(s.pods))
	s.mu.Unlock()

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

// due reports whether there is a mirror pod that was told nothing. What was told
// once and differs now is for status.Manager.Reconcile to say again (st-71), and a
// call that failed for its caller to repeat.
func (s *Statuses) due(e *saidPod) bool {
	if !runtime.IsStatic(e.pod) || e.theirs {
		return false
	}
	mirror := s.target(e)
	return mirror != nil && mirror.UID != e.told
}

// catchUp writes an entry that is due.
func (s *Statuses) catchUp(ctx context.Context, e *saidPod) {
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
	s.cfg.Logger.Warn("status of a mirror pod, will be tried again", "pod", e.pod.Namespace+"/"+e.pod.Name, "uid", e.pod.UID, "err", err)
}

// wake lets Run look again.
func (s *Statuses) wake() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}
