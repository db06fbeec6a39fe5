package pleg

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Follow calls handle for every change, as Run calls Config.Handle, until ctx is done; then it
// returns nil. The first events describe the current state: all containers have started, or
// died. Followers receive all events and do not delay each other.
//
// handle is called on the goroutine of Follow, one event at a time. Without Run or Relist no
// events occur. Follow returns an error if handle is nil.
func (g *Generator) Follow(ctx context.Context, handle func(Event)) error {
	if handle == nil {
		return errors.New("pleg: the handle of Follow is nil")
	}
	f := newFollower()
	g.mu.Lock()
	g.followers = append(g.followers, f)
	for _, uid := range slices.Sorted(maps.Keys(g.pods)) {
		f.update(g.pods[uid])
	}
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.followers = slices.DeleteFunc(g.followers, func(other *follower) bool { return other == f })
	}()
	g.follow(ctx, f, func(_ context.Context, _ types.UID, events []Event, _ time.Time) {
		for _, e := range events {
			handle(e)
		}
	})
	return nil
}

// A follower is a listener: the pods as last delivered to it, and the pods with pending events.
// Both are bounded by the number of pods. The Generator's mu guards it.
type follower struct {
	wake      chan struct{} // capacity 1; signaled when pending grows
	pending   []types.UID   // pods with undelivered events, each once
	delivered map[types.UID]deliveredPod
}

// A deliveredPod is a pod as last delivered to a follower. The zero value is none.
type deliveredPod struct {
	pod     *runtime.Pod
	pending bool      // the pod is in follower.pending
	podSync bool      // a PodSync is due if there is no other event
	eventAt time.Time // of the first event of the runtime that caused the pending ones; zero: none
}

func newFollower() *follower {
	return &follower{wake: make(chan struct{}, 1), delivered: make(map[types.UID]deliveredPod)}
}

// ownFollower returns the follower whose handler is Config.Handle.
func (g *Generator) ownFollower() *follower {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.followers[0]
}

// update marks the pod as pending if its record differs from the pod as last delivered.
func (f *follower) update(r *record) {
	k := f.delivered[r.uid]
	if !r.syncPending && !k.podSync && equal(k.pod, r.current) {
		return
	}
	k.podSync = k.podSync || r.syncPending
	if k.eventAt.IsZero() {
		k.eventAt = r.cause
	}
	if !k.pending {
		k.pending = true
		f.pending = append(f.pending, r.uid)
		signal(f.wake)
	}
	f.delivered[r.uid] = k
}

// take returns the events of the next pending pod and marks them as delivered. It reuses the memory
// of events.
func (f *follower) take(pods map[types.UID]*record, events []Event) (types.UID, []Event, time.Time) {
	uid := f.pending[0]
	f.pending = f.pending[1:]
	k := f.delivered[uid]
	var current *runtime.Pod
	if r := pods[uid]; r != nil {
		current = r.current
	}
	events = slices.AppendSeq(events[:0], diff(k.pod, current))
	if len(events) == 0 && k.podSync {
		events = append(events, Event{UID: uid, Type: PodSync})
	}
	if current == nil {
		delete(f.delivered, uid)
	} else {
		f.delivered[uid] = deliveredPod{pod: current}
	}
	return uid, events, k.eventAt
}

// A deliverFunc delivers the events of one pod. eventAt is the time of the first event of the runtime
// that caused them, zero if none did.
type deliverFunc func(ctx context.Context, uid types.UID, events []Event, eventAt time.Time)

// follow delivers the pending events of f until ctx is done.
func (g *Generator) follow(ctx context.Context, f *follower, handle deliverFunc) {
	for {
		g.deliver(ctx, f, handle)
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
	}
}

// deliver delivers the pending events of f, pod by pod. They are marked as delivered before the call,
// so all events of a pod are delivered even if ctx is done meanwhile.
func (g *Generator) deliver(ctx context.Context, f *follower, handle deliverFunc) {
	var events []Event
	for ctx.Err() == nil {
		g.mu.Lock()
		if len(f.pending) == 0 {
			g.mu.Unlock()
			return
		}
		var uid types.UID
		var eventAt time.Time
		uid, events, eventAt = f.take(g.pods, events)
		g.mu.Unlock()
		if len(events) > 0 {
			handle(ctx, uid, events, eventAt)
		}
	}
}

// callHandle is the deliverFunc of Config.Handle.
func (g *Generator) callHandle(ctx context.Context, uid types.UID, events []Event, eventAt time.Time) {
	g.mu.Lock()
	g.delivered += len(events)
	g.mu.Unlock()
	if g.log.Enabled(ctx, slog.LevelDebug) {
		g.logExits(events)
	}
	info := DeliverInfo{UID: uid, Events: len(events)}
	start := time.Now()
	if !eventAt.IsZero() {
		info.Announced, info.Latency = true, start.Sub(eventAt)
	}
	for _, e := range events {
		g.cfg.Handle(e)
	}
	if f := g.cfg.Hooks.Delivered; f != nil {
		info.Duration = time.Since(start)
		f(info)
	}
}

// logExits logs the exit codes of containers that died.
func (g *Generator) logExits(events []Event) {
	for _, e := range events {
		if e.Type != ContainerDied {
			continue
		}
		status, _ := g.Get(e.UID)
		for i := range status.Containers {
			if c := &status.Containers[i]; c.ID == e.ContainerID {
				g.log.Debug("Container died", "podUID", e.UID, "containerName", c.Name, "containerID", c.ID, "exitCode", c.ExitCode)
			}
		}
	}
}
