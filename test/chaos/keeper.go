package main

import (
	"context"
	"sync"
	"time"
)

// A keeper starts the agent again when it has ended, as systemd does, unless it is
// to stay dead.
type keeper struct {
	agent
	judge *judge

	mu   sync.Mutex
	dead bool // it is killed, and not to be started
	stop context.CancelFunc
	done chan struct{}
}

// begin starts the agent, and keeps it until end or the end of ctx.
func (k *keeper) begin(ctx context.Context) {
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

// once starts the agent, if it is to live, and returns when it has ended.
func (k *keeper) once(ctx context.Context) {
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
		// It says no to what is there: a containerd that is away, or a full disk.
		k.judge.tolerate("an agent that was started ended before it served, and was started again")
	}
	select {
	case <-exited:
	case <-ctx.Done():
		return
	}
	k.mu.Lock()
	dead := k.dead
	k.mu.Unlock()
	if served && ctx.Err() == nil {
		k.judge.check(agentStays, dead, "", "the agent ended by itself: %s", k.tail(3))
	}
}

// kill ends the agent as kill -9 does, and keeps it dead.
func (k *keeper) kill() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead = true
	return k.agent.kill()
}

// revive lets it be started again.
func (k *keeper) revive() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead = false
}

// end ends the agent as Ctrl-C does, for good.
func (k *keeper) end() error {
	k.mu.Lock()
	k.dead = true
	err := k.interrupt()
	k.mu.Unlock()
	k.stop()
	<-k.done
	return err
}

// pid is the agent's process; 0: none runs.
func (k *keeper) pid() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.running() {
		return 0
	}
	return k.cmd.Process.Pid
}
