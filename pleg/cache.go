package pleg

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Get returns the cached status of a pod without waiting. The status is never nil; for a pod
// that does not exist it has the UID only. ObservedAt is the time before the read that last
// confirmed it, zero if there was none.
//
// It returns an error, with the last status before it, if the last inspection of the pod
// failed; and one if the runtime has not been read, so that a pod without a status may run all
// the same. The status is the caller's; the contents of its slices are shared and must not be
// changed.
func (g *Generator) Get(uid types.UID) (*runtime.PodStatus, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.pods[uid]
	if r == nil {
		r = &record{uid: uid, readBy: g.listed} // as recordLocked, but not stored
	}
	if r.err == nil && r.readBy.n == 0 {
		return r.snapshot(), fmt.Errorf("pleg: pod %s: the runtime has not been listed yet", uid)
	}
	return r.snapshot(), r.err
}

// GetNewerThan returns a status of a pod that was read after t, a result of time.Now; setting
// the wall clock does not affect it. (A time without a monotonic clock reading is converted with
// the wall clock at the time of the call.) An announced status, see [runtime.AllowAnnounced],
// counts as read when it was returned. If there is none it requests an inspection, which Run
// makes at once and Relist at its next call, and blocks until it has completed or ctx is done. If
// t is in the future it waits for t first.
//
// A pod that does not exist is not an error: its status has the UID only. Concurrent callers
// share a read. If the read fails or ctx is done, it returns the error and a nil status. The
// contents of the status are shared, as those of Get.
func (g *Generator) GetNewerThan(ctx context.Context, uid types.UID, t time.Time) (*runtime.PodStatus, error) {
	t, err := waitUntil(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("pleg: wait for the status of pod %s: %w", uid, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.recordLocked(uid)
	r.waiting++
	defer func() {
		if r.waiting--; r.waiting == 0 && r.awaited() {
			r.wanted = 0
			g.settleLocked(r) // pins delay the read again
		}
		g.forgetLocked(r)
	}()
	next := g.reads + 1
	if !r.satisfies(t, next) {
		r.wanted = next
		g.requestLocked(r)
	}
	for !r.satisfies(t, next) {
		if err := g.waitLocked(ctx, &r.wake); err != nil {
			return nil, fmt.Errorf("pleg: wait for the status of pod %s: %w", uid, err)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.snapshot(), nil
}

// come waits until t and returns it with a monotonic clock reading, so that setting the wall
// clock does not affect it. It returns an error if ctx is done first.
func waitUntil(ctx context.Context, t time.Time) (time.Time, error) {
	now := time.Now()
	if t == t.Round(0) { // it has no monotonic reading
		t = now.Add(t.Sub(now))
	}
	early := t.Sub(now)
	if early <= 0 {
		return t, nil
	}
	timer := time.NewTimer(early)
	defer timer.Stop()
	select {
	case <-timer.C:
		return t, nil
	case <-ctx.Done():
		return t, ctx.Err()
	}
}

// waitLocked releases mu until wake, which is nil while there are no waiters, is closed. It
// returns an error if ctx is done first.
func (g *Generator) waitLocked(ctx context.Context, wake *chan struct{}) error {
	if *wake == nil {
		*wake = make(chan struct{})
	}
	woken := *wake
	g.mu.Unlock()
	defer g.mu.Lock()
	select {
	case <-woken:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wakeLocked wakes the callers of GetNewerThan that wait for r.
func (r *record) wakeLocked() {
	if r.wake != nil {
		close(r.wake)
		r.wake = nil
	}
}

// Pods returns the pods of the runtime as last read, by a list or by a later inspection, newest
// first. They are shared and must not be changed.
func (g *Generator) Pods() []*runtime.Pod {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.podsLocked()
}

func (g *Generator) podsLocked() []*runtime.Pod {
	pods := make([]*runtime.Pod, 0, len(g.pods))
	for _, r := range g.pods {
		if r.listed != nil {
			pods = append(pods, r.listed)
		}
	}
	slices.SortFunc(pods, func(a, b *runtime.Pod) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.UID, b.UID))
	})
	return pods
}

// PodsNewerThan returns the pods of a list that began after t, for callers that remove what is
// not listed and must not use a list that is minutes old. If there is none it requests a list,
// which Run makes at once, and blocks until it has completed or ctx is done. It returns an error
// and no pods if the list fails or ctx is done.
func (g *Generator) PodsNewerThan(ctx context.Context, t time.Time) ([]*runtime.Pod, error) {
	t, err := waitUntil(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("pleg: wait for a list of pods: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.reads + 1
	for !g.listed.covers(t, next) {
		if g.failed.covers(t, next) && g.failed.n >= next {
			return nil, g.listErr
		}
		if g.listing.n < next { // one in progress may have missed it
			g.requestListLocked()
		}
		if err := g.waitLocked(ctx, &g.listDone); err != nil {
			return nil, fmt.Errorf("pleg: wait for a list of pods: %w", err)
		}
	}
	return g.podsLocked(), nil
}
