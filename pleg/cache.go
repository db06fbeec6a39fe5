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

// Get returns what is known of a pod, without waiting (cache-1). The status is
// never nil; of a pod that is not known it has the UID only. ObservedAt is the
// time before the look that last confirmed it, zero if there was none.
//
// An error says why the pod could not be inspected when last tried, the status
// then is what was known before; or that nobody has looked yet, so that a pod of
// which nothing is known may run all the same. The status is the caller's, what
// its slices hold is shared: do not change it (cache-9).
func (g *Generator) Get(uid types.UID) (*runtime.PodStatus, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.pods[uid]
	if r == nil {
		r = &record{uid: uid, seen: g.listed} // what recordLocked would make, but not kept
	}
	if r.err == nil && r.seen.n == 0 {
		return r.snapshot(), fmt.Errorf("pleg: pod %s: the runtime was not looked at yet", uid)
	}
	return r.snapshot(), r.err
}

// GetNewerThan returns the status of a pod that shows all that happened until
// t, which time.Now gave before: such a time does not mind that the wall clock
// is set. (One without a monotonic clock reading, out of a file say, is placed
// by the wall clock as that stands when the call is made.) If none is at hand it asks for one, which a running Run reads at once and
// a Relist next time, and waits for it, or until ctx ends, which is an error
// (cache-2, lq-2, L-11). A time to come is waited for.
//
// A pod of which the runtime holds nothing is no error: its status has the UID
// only, and was read too. Many callers share a read. On error the status is nil: the read failed, or ctx
// ended. What the status holds is shared, as that of Get is.
func (g *Generator) GetNewerThan(ctx context.Context, uid types.UID, t time.Time) (*runtime.PodStatus, error) {
	t, err := come(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("pleg: wait for the status of pod %s: %w", uid, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.recordLocked(uid)
	r.waiting++ // keeps the record, and has it read even if it is held
	defer func() {
		r.waiting--
		g.forgetLocked(r)
	}()
	next := g.looks + 1
	if !r.answers(t, next) {
		g.askLocked(r)
	}
	for !r.answers(t, next) {
		if err := g.waitLocked(ctx, &r.wake); err != nil {
			return nil, fmt.Errorf("pleg: wait for the status of pod %s: %w", uid, err)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.snapshot(), nil
}

// come returns when t has come, or ctx has ended, which is the error. What it
// returns is t on the monotonic clock, so that it stays where it is when the
// wall clock is set.
func come(ctx context.Context, t time.Time) (time.Time, error) {
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

// waitLocked gives up mu until wake, which is nil while nobody waits, has been
// closed, or ctx has ended, which is the error.
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

// wakeLocked lets those who wait for r look again.
func (r *record) wakeLocked() {
	if r.wake != nil {
		close(r.wake)
		r.wake = nil
	}
}

// Pods returns what the runtime held when last looked at, newest first: of a
// pod that was inspected since the last list, what that showed. The records
// are shared: do not change them.
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

// PodsNewerThan is Pods, as a list shows them that shows all that happened
// until t: for those who do away with what nobody wants, say, and must not go
// by what was there minutes ago (cache-10). If none is at hand it asks for one,
// which a running Run makes at once, and waits for it, or until ctx ends.
//
// On error there are no pods: the list failed, or ctx ended.
func (g *Generator) PodsNewerThan(ctx context.Context, t time.Time) ([]*runtime.Pod, error) {
	t, err := come(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("pleg: wait for a list of pods: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.looks + 1
	for !g.listed.covers(t, next) {
		if g.failed.covers(t, next) && g.failed.n >= next {
			return nil, g.listErr
		}
		if g.listing.n < next { // what is under way may have missed it
			g.wantListLocked()
		}
		if err := g.waitLocked(ctx, &g.ends); err != nil {
			return nil, fmt.Errorf("pleg: wait for a list of pods: %w", err)
		}
	}
	return g.podsLocked(), nil
}
