package sim

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/pause"
	"github.com/kubeparts/kubeparts/runtime"
)

// An Agent is one process of the simulated agent, as a [Machine] uses it: each call
// that the agent makes to the outside (runtime, sink, sources) goes through Call. Once
// the agent is killed, its calls have no effect and block until their context is done.
type Agent struct {
	run   *run
	agent int // the first is 1

	// Guarded by run.mu.
	dead   bool
	counts map[Call]uint64 // calls so far

	collect chan struct{} // capacity 1: remove unused images

	checkpointer runtime.PodCheckpointer // nil if the runtime is none

	done <-chan struct{} // the agent's context is done
	kill func()          // cancels the agent's context
}

// pace implements pace: it waits for the latency of a step inside the agent.
func (a *Agent) pace(what string, uid types.UID) {
	t := time.NewTimer(a.step(what, uid))
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.done:
	}
}

// later calls do after the latency of a step, unless the agent has been killed by then.
func (a *Agent) later(what string, uid types.UID, do func()) {
	time.AfterFunc(a.step(what, uid), func() {
		if !a.isDead() {
			do()
		}
	})
}

// step returns the latency of the next step inside the agent.
func (a *Agent) step(what string, uid types.UID) time.Duration {
	n := a.count(Call{Method: what, UID: uid})
	return latency(hash(a.run.cfg.Seed, 4, uint64(a.agent), n, what, string(uid))) / 16
}

// count counts a call and returns its number, starting at 1, among equal calls.
func (a *Agent) count(what Call) uint64 {
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	a.counts[what]++
	return a.counts[what]
}

// A Call identifies a call to the outside. Its faults and its latency depend only on
// the Call, its number among equal calls, and the seed.
type Call struct {
	Method string    // "SyncPod"
	UID    types.UID // of the affected pod; empty: none
	ID     string    // distinguishes concurrent calls of one Method and UID: a container's ID
}

// errFault is in the error of a call that a Fault step affects.
var errFault = errors.New("simulated fault")

// hangDuration is the time that a hanging call takes unless its context is done
// earlier: a second more than the timeout of CRI clients.
const hangDuration = 2*time.Minute + time.Second

// Call makes a call to the outside; do applies its effect. Each call has a latency
// before its effect and another one after it, which are derived from the seed and the
// call, not from the order in which goroutines run. Runs are repeatable because no two
// calls have their effects at the same instant.
func (a *Agent) Call(ctx context.Context, what Call, do func() error) error {
	return a.call(ctx, what, func(FaultKind, time.Duration) error { return do() })
}

// List is Call for a list. do must return the list as it was age ago; age is zero
// unless a Stale fault affects the call.
func (a *Agent) List(ctx context.Context, what Call, do func(age time.Duration) error) error {
	return a.call(ctx, what, func(kind FaultKind, delay time.Duration) error {
		if kind != Stale {
			delay = 0
		}
		return do(delay)
	})
}

// call is Call with a do that gets the fault and implements its part of it.
func (a *Agent) call(ctx context.Context, what Call, do func(kind FaultKind, delay time.Duration) error) error {
	r := a.run
	n := a.count(what)
	roll := func(salt uint64) uint64 {
		return hash(r.cfg.Seed, salt, uint64(a.agent), n, what.Method, string(what.UID), what.ID)
	}

	if err := pause.For(ctx, latency(roll(0))); err != nil {
		return err
	}
	kind, delay := r.fault(what, roll)
	killer, dies := a.nextCall()
	if dies {
		return a.waitDead(ctx)
	}
	switch kind {
	case Error:
		return a.failed(what, runtime.ErrUnavailable)
	case Hung:
		if err := pause.For(ctx, hangDuration); err != nil {
			return err
		}
		return a.failed(what, context.DeadlineExceeded)
	case Slow:
		if err := pause.For(ctx, delay); err != nil {
			return err
		}
	}
	if a.isDead() {
		return a.waitDead(ctx)
	}
	err := do(kind, delay)
	if killer {
		a.die()
	}
	if a.isDead() {
		return a.waitDead(ctx)
	}
	if kind == Lost && err == nil {
		err = a.failed(what, context.DeadlineExceeded)
	}
	if late := pause.For(ctx, latency(roll(1))); late != nil && err == nil {
		return late
	}
	return err
}

// failed adds a call that failed because of a fault to the trace, and returns its error.
func (a *Agent) failed(what Call, why error) error {
	err := errors.Join(errFault, why)
	a.run.note(Entry{Agent: a.agent, Kind: Called, Call: what.Method, UID: what.UID, Err: why.Error()})
	return err
}

// nextCall is called when a call is about to have its effect. It reports whether the
// agent is to be killed after that effect (killer), or has been killed (dies).
func (a *Agent) nextCall() (killer, dies bool) {
	r := a.run
	r.mu.Lock()
	if a.dead {
		r.mu.Unlock()
		return false, true
	}
	k := r.pending
	if k == nil || k.agent != a {
		r.mu.Unlock()
		return false, false
	}
	k.step.Count--
	if k.step.Count > 0 {
		r.mu.Unlock()
		return false, false
	}
	after := k.step.After
	r.mu.Unlock()
	if after {
		return true, false
	}
	a.die()
	return false, true
}

// die kills the agent.
func (a *Agent) die() {
	r := a.run
	r.mu.Lock()
	if a.dead {
		r.mu.Unlock()
		return
	}
	a.dead = true
	kill := a.kill
	r.mu.Unlock()
	r.note(Entry{Agent: a.agent, Kind: AgentKilled})
	r.machine.AgentKilled(a)
	kill()
}

func (a *Agent) isDead() bool {
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	return a.dead
}

// endedLocked reports whether the agent has been killed or its context is done. The
// caller must hold run.mu.
func (a *Agent) endedLocked() bool {
	select {
	case <-a.done:
		return true
	default:
		return a.dead
	}
}

// waitDead blocks the call of a killed agent until its context is done.
func (a *Agent) waitDead(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// WatchEvents calls watch, the Watch method of a runtime, and passes its events to
// changed, each with a latency and with the faults of "hints". It blocks until watch
// and all calls of changed have returned.
func (a *Agent) WatchEvents(ctx context.Context, watch func(context.Context, func(types.UID)) error, changed func(uid types.UID)) error {
	h := eventRelay{agent: a, changed: changed, pending: map[types.UID]bool{}}
	defer h.wg.Wait()
	return watch(ctx, func(uid types.UID) { h.relay(ctx, uid) })
}

// RecordCall adds a call of SyncPod (kind SyncPodCalled) or of KillPod with a grace
// period in seconds (KillPodCalled) to the trace. pod is the argument of the call; nil:
// the runtime is the only source of the pod. A Machine must call it before the call has
// an effect.
func (a *Agent) RecordCall(kind EntryKind, uid types.UID, pod *v1.Pod, grace *int64) {
	a.run.addImages(kind, pod)
	a.run.note(Entry{Agent: a.agent, Kind: kind, UID: uid, Object: pod, Grace: grace})
}

// RecordResize adds to the trace that a container has cpu thousandths of a CPU from now
// on. id is the container's ID.
func (a *Agent) RecordResize(uid types.UID, id string, cpu int64) {
	a.run.note(Entry{Agent: a.agent, Kind: Resized, UID: uid, Call: id, CPU: cpu})
}

// RecordHook adds to the trace that the postStart hook of a container has succeeded. id is the
// container's ID.
func (a *Agent) RecordHook(uid types.UID, id string) {
	a.run.note(Entry{Agent: a.agent, Kind: HookSucceeded, UID: uid, Call: id})
}

// RecordCheckpoint adds to the trace that the runtime has written a checkpoint of a pod to a directory.
func (a *Agent) RecordCheckpoint(uid types.UID, dir string) { a.run.saveCheckpoint(a, uid, dir) }

// RecordRestore adds to the trace that the runtime has restored a pod in a sandbox, with all containers that the
// sandbox has now.
func (a *Agent) RecordRestore(uid types.UID, sandbox string) {
	a.run.note(Entry{Agent: a.agent, Kind: PodRestored, UID: uid, Call: sandbox})
}

// Pause waits for the latency of a step inside a Machine's client. step names it.
func (a *Agent) Pause(step string, uid types.UID) { a.pace(step, uid) }
