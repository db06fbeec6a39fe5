package chaos

import (
	"context"
	"sync"
	"time"
)

// An agentKeeper restarts the agent when it terminates, as systemd does, unless it was killed.
type agentKeeper struct {
	agent
	judge *judge

	mu    sync.Mutex
	dead  bool          // killed, and not to be restarted
	ended chan struct{} // agent.exited of the last one that was killed or interrupted here
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
		k.judge.tolerate("the agent could not be started: " + err.Error())
		return
	}
	exited := k.exited
	k.mu.Unlock()
	err := k.await(ctx)
	served := err == nil
	if !served && ctx.Err() == nil {
		// It cannot start: containerd is unavailable, or a disk is full.
		k.judge.tolerate("an agent that was started ended before it served, and was started again")
	}
	select {
	case <-exited:
	case <-ctx.Done():
		return
	}
	k.mu.Lock()
	ended := k.ended == exited
	k.mu.Unlock()
	if served && ctx.Err() == nil {
		k.judge.check(agentKeepsRunning, ended, "", "the agent terminated by itself: %s", k.tail(3))
	}
}

// kill kills the agent until revive is called.
func (k *agentKeeper) kill() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead, k.ended = true, k.exited
	return k.agent.kill()
}

// revive allows the agent to be restarted.
func (k *agentKeeper) revive() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead = false
}

// end stops the agent with SIGINT and does not restart it.
func (k *agentKeeper) end() error {
	k.mu.Lock()
	k.dead, k.ended = true, k.exited
	err := k.interrupt()
	k.mu.Unlock()
	k.stop()
	<-k.done
	return err
}

// pid returns the agent's process ID, zero if it is not running.
func (k *agentKeeper) pid() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.running() {
		return 0
	}
	return k.cmd.Process.Pid
}
