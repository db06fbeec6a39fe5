package containers

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// A view is one observation of the backend.
type view struct {
	sandboxes map[string]*sandbox
	instances map[string]*instance // by Key, which is the container ID of the engine
}

// A sandbox is the sandbox of a pod: a group of the backend, or without a Grouper only a record.
type sandbox struct {
	sandboxRecord
	group string // the ID of the group, if it exists
	ready bool
	ips   []string
}

// An instance is an instance of a container.
type instance struct {
	containerRecord
	key, sandbox string
	state        *State // nil: created and not run
}

// viewKey is the context key of a sharedView.
type viewKey struct{}

// A sharedView is shared by the CRI calls of one inspection.
type sharedView struct {
	once sync.Once
	view *view
	err  error
}

// observe returns the state of the backend, or the state in the inspection to which ctx belongs.
func (s *service) observe(ctx context.Context) (*view, error) {
	shared, ok := ctx.Value(viewKey{}).(*sharedView)
	if !ok {
		return s.read(ctx)
	}
	shared.once.Do(func() { shared.view, shared.err = s.read(ctx) })
	return shared.view, shared.err
}

// read lists the instances and groups. The rest is what the backend does not have yet: created
// instances, and without a Grouper sandboxes without instances.
func (s *service) read(ctx context.Context) (*view, error) {
	// Memory is read first: an instance that starts meanwhile is in one of both.
	s.mu.Lock()
	v := &view{sandboxes: map[string]*sandbox{}, instances: map[string]*instance{}}
	for id, c := range s.created.read() {
		box := c.Record.Sandbox
		v.instances[id] = &instance{containerRecord: *c.Record.Container, key: id, sandbox: box.ID}
		if s.grouper == nil {
			v.sandboxes[box.ID] = &sandbox{sandboxRecord: box, ready: true}
		}
	}
	for id, box := range s.sandboxes {
		v.sandboxes[id] = &sandbox{sandboxRecord: box, ready: true}
	}
	stopped := maps.Clone(s.stopped)
	s.mu.Unlock()

	var groups []GroupState
	if s.grouper != nil { // first: an instance that is listed has a group
		var err error
		if groups, err = s.grouper.Groups(ctx); err != nil {
			return nil, backendError(ctx, "list groups", err)
		}
	}
	states, err := s.backend.List(ctx)
	if err != nil {
		return nil, backendError(ctx, "list instances", err)
	}
	for _, g := range groups {
		if r := decode(g.Record, s.node); r != nil && r.Container == nil {
			v.sandboxes[r.Sandbox.ID] = &sandbox{sandboxRecord: r.Sandbox, group: g.ID, ready: g.Running, ips: g.IPs}
		}
	}
	slices.SortFunc(states, func(a, b State) int { return a.StartedAt.Compare(b.StartedAt) })
	for i := range states {
		state := &states[i]
		r := decode(state.Record, s.node)
		if r == nil || r.Container == nil {
			continue
		}
		box := v.sandboxes[r.Sandbox.ID]
		if box == nil {
			box = &sandbox{sandboxRecord: r.Sandbox, ready: s.grouper == nil}
			v.sandboxes[r.Sandbox.ID] = box
		}
		if s.grouper == nil && state.Phase == Running && state.IP != "" && box.ips == nil {
			box.ips = []string{state.IP}
		}
		v.instances[state.Key] = &instance{containerRecord: *r.Container, key: state.Key, sandbox: r.Sandbox.ID, state: state}
	}
	for id, box := range v.sandboxes {
		box.ready = box.ready && !stopped[id]
	}
	for _, c := range v.instances {
		s.logs.follow(c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = map[string]string{}
	for key, c := range v.instances {
		if c.state != nil {
			s.ids[key] = c.state.ID
			if c.state.Phase != Queued { // otherwise it is run again with the same Key, if it was not started
				s.created.remove(key)
			}
		}
	}
	return v, nil
}
