package fakecloud

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/test/cloud"
)

// A Cloud is a cloud.API and a cloud.Eventer. The zero value has no machines; its fields
// are set before the first call.
type Cloud struct {
	// Latency of each call, Boot time of a machine, Launch time of a process.
	Latency, Boot, Launch time.Duration

	// Fault, if set, is asked before each call, by the name of its method, and after it
	// (done), when its effect is there and only the answer can be lost. Nil is no fault.
	// It is called from many goroutines.
	Fault func(call string, done bool) error

	mu       sync.Mutex
	programs map[string]Program
	launched map[string]int // how often each program was, on the whole cloud
	machines []*machine
	watchers map[*watcher]struct{}
	serial   int
	calls    int
}

var (
	_ cloud.API     = (*Cloud)(nil)
	_ cloud.Eventer = (*Cloud)(nil)
)

// Calls returns how many calls there were.
func (c *Cloud) Calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// call is one call: it takes its time, has its effect under the lock, and waits for the
// channel that the effect returns, nil for none.
func (c *Cloud) call(ctx context.Context, name string, effect func() (<-chan struct{}, error)) error {
	fault := func(done bool) error {
		if c.Fault == nil {
			return nil
		}
		return c.Fault(name, done)
	}
	if err := sleep(ctx, c.Latency); err != nil {
		return err
	}
	if err := fault(false); err != nil {
		return err
	}
	c.mu.Lock()
	c.calls++
	wait, err := effect()
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fault(true)
}

func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// idLocked returns an ID that nothing has had.
func (c *Cloud) idLocked(kind string) string {
	c.serial++
	return fmt.Sprintf("%s-%d", kind, c.serial)
}

func (c *Cloud) machineLocked(id string) (*machine, error) {
	for _, m := range c.machines {
		if m.ID == id {
			return m, nil
		}
	}
	return nil, fmt.Errorf("machine %s: %w", id, runtime.ErrNotFound)
}

func (c *Cloud) processLocked(id string) (*process, error) {
	for _, m := range c.machines {
		if i := slices.IndexFunc(m.processes, func(p *process) bool { return p.ID == id }); i >= 0 {
			return m.processes[i], nil
		}
	}
	return nil, fmt.Errorf("process %s: %w", id, runtime.ErrNotFound)
}

// has reports whether all of want are among tags.
func has(tags, want map[string]string) bool {
	for tag, value := range want {
		if got, ok := tags[tag]; !ok || got != value {
			return false
		}
	}
	return true
}
