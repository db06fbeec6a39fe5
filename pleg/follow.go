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
		f.settle(g.pods[uid])
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
	edge  chan struct{} // of capacity 1: there is news
	news  []types.UID   // pods of which there is some, each once
	knows map[types.UID]knowledge
}

// knowledge is a pod as last delivered to a follower. The zero value is none.
type knowledge struct {
	told   *runtime.Pod
	ready  bool      // it stands in news
	synced bool      // a PodSync is owed, unless there is other news
	hinted time.Time // the first hint that led to what is owed; zero: none
}

func newFollower() *follower {
	return &follower{edge: make(chan struct{}, 1), knows: make(map[types.UID]knowledge)}
}

// own returns the follower whose handle is Config.Handle. Others come and go
// meanwhile.
func (g *Generator) own() *follower {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.followers[0]
}

// settle notes whether the record has news for the follower.
func (f *follower) settle(r *record) {
	k := f.knows[r.uid]
	if !r.synced && !k.synced && same(k.told, r.current) {
		return
	}
	k.synced = k.synced || r.synced
	if k.hinted.IsZero() {
		k.hinted = r.led
	}
	if !k.ready {
		k.ready = true
		f.news = append(f.news, r.uid)
		edge(f.edge)
	}
	f.knows[r.uid] = k
}

// take returns the events that are owed for the next pod, and counts them as
// told. They are put into events.
func (f *follower) take(pods map[types.UID]*record, events []Event) (types.UID, []Event, time.Time) {
	uid := f.news[0]
	f.news = f.news[1:]
	k := f.knows[uid]
	var current *runtime.Pod
	if r := pods[uid]; r != nil {
		current = r.current
	}
	events = slices.AppendSeq(events[:0], diff(k.told, current))
	if len(events) == 0 && k.synced {
		events = append(events, Event{UID: uid, Type: PodSync}) // pleg-20
	}
	if current == nil {
		delete(f.knows, uid)
	} else {
		f.knows[uid] = knowledge{told: current}
	}
	return uid, events, k.hinted
}

// A teller delivers the events of one pod. hinted is the time of the first event of the runtime
// that caused them, zero if none did.
type teller func(ctx context.Context, uid types.UID, events []Event, hinted time.Time)

// follow tells f's news until ctx ends.
func (g *Generator) follow(ctx context.Context, f *follower, tell teller) {
	for {
		g.deliver(ctx, f, tell)
		select {
		case <-ctx.Done():
			return
		case <-f.edge:
		}
	}
}

// deliver tells f the news there is, pod by pod. Told counts before it is told:
// the events of a pod that were begun are delivered to the end, even if ctx
// ends meanwhile.
func (g *Generator) deliver(ctx context.Context, f *follower, tell teller) {
	var events []Event
	for ctx.Err() == nil {
		g.mu.Lock()
		if len(f.news) == 0 {
			g.mu.Unlock()
			return
		}
		var uid types.UID
		var hinted time.Time
		uid, events, hinted = f.take(g.pods, events)
		g.mu.Unlock()
		if len(events) > 0 {
			tell(ctx, uid, events, hinted)
		}
	}
}

// tell is the teller of Config.Handle.
func (g *Generator) tell(ctx context.Context, uid types.UID, events []Event, hinted time.Time) {
	g.mu.Lock()
	g.delivered += len(events)
	g.mu.Unlock()
	if g.log.Enabled(ctx, slog.LevelDebug) {
		g.logExits(events)
	}
	info := DeliverInfo{UID: uid, Events: len(events)}
	start := time.Now()
	if !hinted.IsZero() {
		info.Hinted, info.Latency = true, start.Sub(hinted)
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
