package containerstest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/internal/pause"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A Backend is a backend in memory that implements all optional interfaces except Puller. The zero value
// is ready. Safe for concurrent use. It uses package time and has no goroutines; queues and exits are
// timers.
type Backend struct {
	// Fault returns the fault of each call, whose ID is the key of the instance or group, and whose
	// Number counts all calls. If nil, there are none. It must be set before the first
	// call.
	Fault func(fake.Call) fake.Fault

	mu         sync.Mutex
	behaviors  map[string]fake.Behavior
	instances  map[string]*instance // by ID
	groups     map[string]*group
	watchers   map[*func(string)]struct{}
	calls      int
	last       int
	violations []error
}

type instance struct {
	containers.State
	container containers.Container
	behavior  fake.Behavior
	exited    chan struct{}
}

type group struct {
	containers.GroupState
	key string
}

var (
	_ containers.Backend       = (*Backend)(nil)
	_ containers.Grouper       = (*Backend)(nil)
	_ containers.Execer        = (*Backend)(nil)
	_ containers.Attacher      = (*Backend)(nil)
	_ containers.LogReader     = (*Backend)(nil)
	_ containers.StatsProvider = (*Backend)(nil)
	_ containers.Watcher       = (*Backend)(nil)
)

// Behave sets the behavior of the instances of an image, from their next start on. The options start,
// queue, fail, exit, oom, message, stop, ignoreTERM and log, Exec and Attach have an effect. An Exec of nil
// makes commands succeed without output, an Attach of nil blocks.
func (b *Backend) Behave(image string, behavior fake.Behavior) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.behaviors == nil {
		b.behaviors = map[string]fake.Behavior{}
	}
	b.behaviors[image] = behavior
}

// Calls returns the number of calls.
func (b *Backend) Calls() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// Violations returns an error for each time that two instances of a container ran at the same time, or
// that a container ran in a stopped group.
func (b *Backend) Violations() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(b.violations...)
}

// Instances returns the containers that were run and not removed, in order.
func (b *Backend) Instances() []containers.Container {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []containers.Container
	for _, id := range slices.Sorted(maps.Keys(b.instances)) {
		list = append(list, b.instances[id].container)
	}
	return list
}

// Exit makes a running instance exit.
func (b *Backend) Exit(id string, code int32) {
	b.mu.Lock()
	i := b.instances[id]
	b.mu.Unlock()
	if i != nil {
		b.exit(i, code, "")
	}
}

// Crash stops a group and kills whatever runs in it.
func (b *Backend) Crash(id string) error {
	b.mu.Lock()
	g := b.groups[id]
	if g == nil {
		b.mu.Unlock()
		return fmt.Errorf("group %q: %w", id, runtime.ErrNotFound)
	}
	g.Running = false
	inside := b.inside(id)
	b.mu.Unlock()
	for _, i := range inside {
		b.exit(i, 137, "")
	}
	b.notify(g.Record)
	return nil
}

// call counts a call, applies its fault and runs effect.
func (b *Backend) call(ctx context.Context, method, key string, effect func(ctx context.Context) error) error {
	b.mu.Lock()
	b.calls++
	c := fake.Call{Method: method, ID: key, Number: b.calls}
	b.mu.Unlock()
	var f fake.Fault
	if b.Fault != nil {
		f = b.Fault(c)
	}
	if f.Lost {
		ctx = context.WithoutCancel(ctx)
	} else if err := ctx.Err(); err != nil {
		return err
	}
	return f.Do(ctx, func(time.Duration) error { return effect(ctx) })
}

// Run implements containers.Backend.
func (b *Backend) Run(ctx context.Context, c containers.Container) (id string, err error) {
	err = b.call(ctx, "Run", c.Key, func(ctx context.Context) error {
		b.mu.Lock()
		behavior := b.behaviors[c.Image]
		b.mu.Unlock()
		if err := pause.For(ctx, behavior.StartDelay); err != nil {
			return err
		}
		if f := behavior.Fail; f != nil {
			return fmt.Errorf("%s: %s", f.Reason, f.Message)
		}
		id = b.add(c, behavior)
		return nil
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

func (b *Backend) add(c containers.Container, behavior fake.Behavior) string {
	b.mu.Lock()
	for id, i := range b.instances {
		if i.Key == c.Key {
			b.mu.Unlock()
			return id
		}
	}
	if b.instances == nil {
		b.instances = map[string]*instance{}
	}
	b.last++
	id := fmt.Sprintf("i-%06d", b.last)
	i := &instance{State: containers.State{ID: id, Key: c.Key, Record: c.Record}, container: c, behavior: behavior, exited: make(chan struct{})}
	if g := b.groups[c.Group]; c.Group != "" && (g == nil || !g.Running) {
		b.violations = append(b.violations, fmt.Errorf("container %s of pod %s runs in the stopped group %q", c.Name, c.Pod.UID, c.Group))
	}
	b.instances[id] = i
	b.mu.Unlock()
	if behavior.QueueDelay > 0 {
		time.AfterFunc(behavior.QueueDelay, func() { b.begin(i) })
	} else {
		b.begin(i)
	}
	b.notify(c.Record)
	return id
}

// begin makes a queued instance run.
func (b *Backend) begin(i *instance) {
	b.mu.Lock()
	if i.Phase != containers.Queued {
		b.mu.Unlock()
		return
	}
	for _, other := range b.instances {
		if other.Phase == containers.Running && other.container.Pod.UID == i.container.Pod.UID && other.container.Name == i.container.Name {
			b.violations = append(b.violations, fmt.Errorf("two instances of container %s of pod %s run", i.container.Name, i.container.Pod.UID))
		}
	}
	i.Phase, i.StartedAt = containers.Running, time.Now()
	if i.container.Group == "" {
		i.IP = fmt.Sprintf("10.1.%d.%d", b.last/250, b.last%250+1)
	}
	b.mu.Unlock()
	if e := i.behavior.Exit; e != nil {
		time.AfterFunc(e.After, func() { b.exit(i, e.Code, e.Message) })
	}
	b.notify(i.Record)
}

func (b *Backend) exit(i *instance, code int32, message string) {
	b.mu.Lock()
	if i.Phase == containers.Exited {
		b.mu.Unlock()
		return
	}
	i.Phase, i.FinishedAt, i.ExitCode, i.Message = containers.Exited, time.Now(), code, message
	close(i.exited)
	b.mu.Unlock()
	b.notify(i.Record)
}

// Stop implements containers.Backend.
func (b *Backend) Stop(ctx context.Context, id string, grace time.Duration) error {
	b.mu.Lock()
	i := b.instances[id]
	b.mu.Unlock()
	if i == nil {
		return b.call(ctx, "Stop", "", func(context.Context) error { return nil })
	}
	return b.call(ctx, "Stop", i.Key, func(ctx context.Context) error {
		b.mu.Lock()
		queued := i.Phase == containers.Queued
		b.mu.Unlock()
		switch {
		case queued || grace <= 0:
			b.exit(i, 137, "")
		case i.behavior.IgnoreTERM || i.behavior.StopDelay > grace:
			time.AfterFunc(grace, func() { b.exit(i, 137, "") })
		case i.behavior.StopDelay > 0:
			time.AfterFunc(i.behavior.StopDelay, func() { b.exit(i, 143, "") })
		default:
			b.exit(i, 143, "")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-i.exited:
			return nil
		}
	})
}

// Remove implements containers.Backend. Removing a running instance is an error.
func (b *Backend) Remove(ctx context.Context, id string) error {
	b.mu.Lock()
	i := b.instances[id]
	b.mu.Unlock()
	if i == nil {
		return b.call(ctx, "Remove", "", func(context.Context) error { return nil })
	}
	return b.call(ctx, "Remove", i.Key, func(ctx context.Context) error {
		b.mu.Lock()
		if i.Phase != containers.Exited {
			b.mu.Unlock()
			return fmt.Errorf("instance %s has not exited", id)
		}
		delete(b.instances, id)
		b.mu.Unlock()
		b.notify(i.Record)
		return nil
	})
}

// List implements containers.Backend.
func (b *Backend) List(ctx context.Context) (list []containers.State, err error) {
	err = b.call(ctx, "List", "", func(ctx context.Context) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, i := range b.instances {
			list = append(list, i.State)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// RunGroup implements containers.Grouper.
func (b *Backend) RunGroup(ctx context.Context, g containers.Group) (id string, err error) {
	err = b.call(ctx, "RunGroup", g.Key, func(ctx context.Context) error {
		b.mu.Lock()
		for other, have := range b.groups {
			if have.key == g.Key {
				id = other
				b.mu.Unlock()
				return nil
			}
		}
		if b.groups == nil {
			b.groups = map[string]*group{}
		}
		b.last++
		id = fmt.Sprintf("g-%06d", b.last)
		b.groups[id] = &group{containers.GroupState{
			ID: id, Key: g.Key, Record: g.Record, Running: true, IPs: []string{fmt.Sprintf("10.0.%d.%d", b.last/250, b.last%250+1)},
		}, g.Key}
		b.mu.Unlock()
		b.notify(g.Record)
		return nil
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// inside returns the instances of a group. The caller must hold mu.
func (b *Backend) inside(id string) (list []*instance) {
	for _, i := range b.instances {
		if i.container.Group == id {
			list = append(list, i)
		}
	}
	return list
}

// StopGroup implements containers.Grouper.
func (b *Backend) StopGroup(ctx context.Context, id string) error {
	return b.call(ctx, "StopGroup", id, func(ctx context.Context) error {
		if err := b.Crash(id); !errors.Is(err, runtime.ErrNotFound) {
			return err
		}
		return nil
	})
}

// RemoveGroup implements containers.Grouper.
func (b *Backend) RemoveGroup(ctx context.Context, id string) error {
	return b.call(ctx, "RemoveGroup", id, func(ctx context.Context) error {
		b.mu.Lock()
		g := b.groups[id]
		delete(b.groups, id)
		b.mu.Unlock()
		if g != nil {
			b.notify(g.Record)
		}
		return nil
	})
}

// Groups implements containers.Grouper.
func (b *Backend) Groups(ctx context.Context) (list []containers.GroupState, err error) {
	err = b.call(ctx, "Groups", "", func(ctx context.Context) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, g := range b.groups {
			list = append(list, g.GroupState)
		}
		return nil
	})
	return list, err
}
