package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// An agentKeeper restarts the agent when it terminates, as systemd does, unless it was killed.
type agentKeeper struct {
	agent
	checker *checker

	mu    sync.Mutex
	dead  bool            // killed, and not to be restarted
	ended *labenv.Process // the last one that was killed or stopped here
	stop  context.CancelFunc
	done  chan struct{}
}

// begin runs the agent until end is called or ctx is done.
func (k *agentKeeper) begin(ctx context.Context) {
	ctx, k.stop = context.WithCancel(ctx)
	k.done = make(chan struct{})
	go func() {
		defer close(k.done)
		for ctx.Err() == nil {
			k.once(ctx)
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
}

// once starts the agent, unless it must stay dead, and returns when it has terminated.
func (k *agentKeeper) once(ctx context.Context) {
	k.mu.Lock()
	if k.dead {
		k.mu.Unlock()
		return
	}
	if err := k.launch(); err != nil {
		k.mu.Unlock()
		k.checker.tolerate("the agent could not be started: " + err.Error())
		return
	}
	process := k.process
	k.mu.Unlock()
	err := k.await(ctx)
	served := err == nil
	if !served && ctx.Err() == nil {
		// It cannot start: containerd is unavailable, or a disk is full.
		k.checker.tolerate("an agent that was started ended before it served, and was started again")
	}
	select {
	case <-process.Exited:
	case <-ctx.Done():
		return
	}
	k.mu.Lock()
	ended := k.ended == process
	k.mu.Unlock()
	if served && ctx.Err() == nil {
		k.checker.check(agentKeepsRunning, ended, "", "the agent terminated by itself: %s", process.Tail(3))
	}
}

// kill kills the agent until revive is called.
func (k *agentKeeper) kill() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead, k.ended = true, k.process
	return k.process.Kill()
}

// revive allows the agent to be restarted.
func (k *agentKeeper) revive() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead = false
}

// end stops the agent with SIGTERM and does not restart it.
func (k *agentKeeper) end() error {
	k.mu.Lock()
	k.dead, k.ended = true, k.process
	err := k.process.Stop(time.Minute)
	k.mu.Unlock()
	k.stop()
	<-k.done
	return err
}

// pid returns the agent's process ID, zero if it is not running.
func (k *agentKeeper) pid() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.process.Running() {
		return 0
	}
	return k.process.PID()
}
