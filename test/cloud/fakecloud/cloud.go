package fakecloud

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/test/cloud"
)

// A Cloud is a cloud.API and a cloud.Eventer. The zero value has no machines. Fields must be
// set before the first call.
type Cloud struct {
	// Latency of each call, Boot time of a machine, Launch time of a process.
	Latency, Boot, Launch time.Duration

	// Fault returns the error of a call: before it takes effect, and afterwards, with done
	// set, when only the answer can be lost. It must be safe for concurrent use. If nil,
	// calls do not fail.
	Fault func(call string, done bool) error

	mu       sync.Mutex
	programs map[string]fake.Behavior
	launched map[string]int // number of processes by image
	machines []*machine
	watchers map[*watcher]struct{}
	serial   int
	calls    int
}

var (
	_ cloud.API     = (*Cloud)(nil)
	_ cloud.Eventer = (*Cloud)(nil)
)

// Calls returns the number of calls.
func (c *Cloud) Calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// call performs a call: it waits for the latency, applies effect under the lock, and waits
// for the channel that effect returns, unless that is nil.
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

// idLocked returns a new ID.
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

// has reports whether tags contains all of want.
func has(tags, want map[string]string) bool {
	for tag, value := range want {
		if got, ok := tags[tag]; !ok || got != value {
			return false
		}
	}
	return true
}
