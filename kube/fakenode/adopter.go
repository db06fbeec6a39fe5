package fakenode

import (
	"context"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An adopter runs the nodes whose objects other clients have created.
type adopter struct {
	of       *Nodes
	due      chan struct{}      // capacity 1; there are changes
	reassess chan chan struct{} // calls of Nodes.Reassess; the value is closed when they are done
	stopped  chan struct{}      // closed when run has returned
	number   int                // of nodes that were adopted; used by run only

	mu      sync.Mutex // guards the fields below
	objects map[string]*v1.Node
	changed map[string]bool // names of objects that run has not considered
	running map[string]*adopted
}

// An adopted is a node that runs.
type adopted struct {
	*host
	uid  types.UID // of the object
	stop context.CancelFunc
	done chan struct{} // closed when it has stopped
}

func newAdopter(of *Nodes) *adopter {
	return &adopter{
		of: of, due: make(chan struct{}, 1), reassess: make(chan chan struct{}), stopped: make(chan struct{}),
		objects: map[string]*v1.Node{}, changed: map[string]bool{}, running: map[string]*adopted{},
	}
}

// observed is called with every node of the cluster.
func (a *adopter) observed(node *v1.Node, deleted bool) {
	if a.of.byName[node.Name] != nil {
		return
	}
	a.mu.Lock()
	a.changed[node.Name] = true
	if a.objects[node.Name] = node; deleted {
		delete(a.objects, node.Name)
	}
	a.mu.Unlock()
	select {
	case a.due <- struct{}{}:
	default:
	}
}

// run starts and stops nodes until ctx is done, and then stops all.
func (a *adopter) run(ctx context.Context) error {
	defer close(a.stopped)
	defer a.halt(func(*adopted) bool { return true })
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.due:
			a.consider(ctx, a.takeChanged())
		case done := <-a.reassess:
			a.takeChanged()
			a.mu.Lock()
			names := slices.Sorted(maps.Keys(a.objects))
			a.mu.Unlock()
			a.consider(ctx, names)
			close(done)
		}
	}
}

// takeChanged returns the names of objects that have changed, and forgets them.
func (a *adopter) takeChanged() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	names := slices.Sorted(maps.Keys(a.changed))
	clear(a.changed)
	return names
}

// consider stops the nodes that are not to run any longer, and then starts others.
func (a *adopter) consider(ctx context.Context, names []string) {
	desired := map[string]*v1.Node{}
	for _, name := range names {
		a.mu.Lock()
		o := a.objects[name]
		a.mu.Unlock()
		if o != nil && a.of.cfg.Adopt(o) {
			desired[name] = o
		}
	}
	considered := make(map[string]bool, len(names))
	for _, name := range names {
		considered[name] = true
	}
	a.halt(func(r *adopted) bool {
		o := desired[r.spec.Name]
		return considered[r.spec.Name] && (o == nil || o.UID != r.uid)
	})
	for _, name := range names {
		if o := desired[name]; o != nil && a.find(name) == nil && ctx.Err() == nil {
			a.start(ctx, o)
		}
	}
}

// start runs a node.
func (a *adopter) start(ctx context.Context, o *v1.Node) {
	a.number++
	h, err := newHost(a.of, len(a.of.hosts)+a.number, Node{Name: o.Name}, true)
	if err != nil {
		a.of.cfg.Logger.Error("Failed to adopt node", "node", o.Name, "err", err)
		return
	}
	ctx, stop := context.WithCancel(ctx)
	r := &adopted{host: h, uid: o.UID, stop: stop, done: make(chan struct{})}
	a.mu.Lock()
	a.running[o.Name] = r
	a.mu.Unlock()
	go func() {
		defer close(r.done)
		if err := h.run(ctx); err != nil {
			a.of.cfg.Logger.Error("Adopted node stopped", "node", o.Name, "err", err)
		}
	}()
}

// halt stops the nodes that are selected, and forgets their pods.
func (a *adopter) halt(selected func(*adopted) bool) {
	a.mu.Lock()
	var stopping []*adopted
	for _, r := range a.running {
		if selected(r) {
			stopping = append(stopping, r)
			r.stop()
		}
	}
	a.mu.Unlock()
	for _, r := range stopping {
		<-r.done
		for _, s := range r.current().agent.Table().States() {
			r.runtime.Remove(s.UID) // and its timers
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range stopping {
		delete(a.running, r.spec.Name)
	}
}

// find returns a node that runs; nil if it does not.
func (a *adopter) find(name string) *host {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.running[name]; r != nil {
		return r.host
	}
	return nil
}

// list returns the nodes that run, by name.
func (a *adopter) list() []*host {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*host
	for _, name := range slices.Sorted(maps.Keys(a.running)) {
		out = append(out, a.running[name].host)
	}
	return out
}
