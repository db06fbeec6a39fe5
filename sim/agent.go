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

// An Agent is one life of the simulated agent, as a [Machine] has to do with it:
// each call that it makes of the outside (runtime, sink, sources) goes through
// Call. Once the agent is killed, its calls have no effect and come back only
// when their context ends.
type Agent struct {
	run   *run
	agent int // the first is 1

	// Guarded by run.mu.
	dead   bool
	counts map[Call]uint64 // calls so far

	collect chan struct{} // of capacity 1: images are to be removed

	done <-chan struct{} // closed at the end of the agent's context, which
	kill func()          // brings about
}

// pace is a call of the outside that does nothing, and nothing happens to: see
// there.
func (a *Agent) pace(what string, uid types.UID) {
	t := time.NewTimer(a.step(what, uid))
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.done:
	}
}

// later has do done after a moment, if the agent lives then.
func (a *Agent) later(what string, uid types.UID, do func()) {
	time.AfterFunc(a.step(what, uid), func() {
		if !a.isDead() {
			do()
		}
	})
}

// step returns how long a step inside the agent takes.
func (a *Agent) step(what string, uid types.UID) time.Duration {
	n := a.number(Call{Method: what, UID: uid})
	return moment(dice(a.run.cfg.Seed, 4, uint64(a.agent), n, what, string(uid))) / 16
}

// number returns how many calls of that kind there have been, this one included.
func (a *Agent) number(what Call) uint64 {
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	a.counts[what]++
	return a.counts[what]
}

// A Call is a call of the outside: what its Fault steps, its number, and what
// chance has in store for it depend on, whatever else goes on.
type Call struct {
	Method string    // "SyncPod"
	UID    types.UID // of the pod that it is about; empty: none
	Of     string    // tells it from calls that are made at the same time: a container's ID
}

// errFault is what a call fails with that a Fault step hits.
var errFault = errors.New("a simulated fault")

// hangs is how long a call hangs if nobody gives it up before: a second more than
// what callers of a CRI wait.
const hangs = 2*time.Minute + time.Second

// Call makes a call of the outside: do is its effect. Each call takes a moment
// before its effect and another one after it, drawn from the seed and from the
// call, not from the order in which goroutines run; that no two calls of a run
// do anything at the same instant is what makes runs repeatable.
func (a *Agent) Call(ctx context.Context, what Call, do func() error) error {
	return a.call(ctx, what, func(FaultKind, time.Duration) error { return do() })
}

// List is Call for a list, whose answer is to be that old: zero, but for Stale
// faults.
func (a *Agent) List(ctx context.Context, what Call, do func(age time.Duration) error) error {
	return a.call(ctx, what, func(kind FaultKind, delay time.Duration) error {
		if kind != Stale {
			delay = 0
		}
		return do(delay)
	})
}

// call is Call where do knows of the fault, and does its part of it.
func (a *Agent) call(ctx context.Context, what Call, do func(kind FaultKind, delay time.Duration) error) error {
	r := a.run
	n := a.number(what)
	roll := func(salt uint64) uint64 {
		return dice(r.cfg.Seed, salt, uint64(a.agent), n, what.Method, string(what.UID), what.Of)
	}

	if err := pause.For(ctx, moment(roll(0))); err != nil {
		return err
	}
	kind, delay := r.fault(what, roll)
	killer, dies := a.reached()
	if dies {
		return a.gone(ctx)
	}
	switch kind {
	case Error:
		return a.failed(what, runtime.ErrUnavailable)
	case Hung:
		if err := pause.For(ctx, hangs); err != nil {
			return err
		}
		return a.failed(what, context.DeadlineExceeded)
	case Slow:
		if err := pause.For(ctx, delay); err != nil {
			return err
		}
	}
	if a.isDead() {
		return a.gone(ctx)
	}
	err := do(kind, delay)
	if killer {
		a.die()
	}
	if a.isDead() {
		return a.gone(ctx)
	}
	if kind == Lost && err == nil {
		err = a.failed(what, context.DeadlineExceeded)
	}
	if late := pause.For(ctx, moment(roll(1))); late != nil && err == nil {
		return late
	}
	return err
}

// failed notes that a fault hit a call.
func (a *Agent) failed(what Call, why error) error {
	err := errors.Join(errFault, why)
	a.run.note(Entry{Agent: a.agent, Kind: Called, Call: what.Method, UID: what.UID, Err: why.Error()})
	return err
}

// reached is called when a call is about to have its effect. It reports whether
// the agent dies of it afterwards (killer), or is dead now.
func (a *Agent) reached() (killer, dies bool) {
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
	r.note(Entry{Agent: a.agent, Kind: AgentDied})
	r.machine.Died(a)
	kill()
}

func (a *Agent) isDead() bool {
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	return a.dead
}

// ended reports whether the context of the agent has ended.
func (a *Agent) ended() bool {
	select {
	case <-a.done:
		return true
	default:
		return a.isDead()
	}
}

// gone is how calls of a dead agent end.
func (a *Agent) gone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Hints passes the hints of a runtime on, each with its moment, and the faults of
// "hints": watch is the Watch of the runtime.
func (a *Agent) Hints(ctx context.Context, watch func(context.Context, func(types.UID)) error, changed func(uid types.UID)) error {
	h := hinter{agent: a, changed: changed, coming: map[types.UID]bool{}}
	defer h.wg.Wait()
	return watch(ctx, func(uid types.UID) { h.hint(ctx, uid) })
}

// Began notes that the agent has called SyncPod of a pod (SyncBegan), or KillPod
// with that grace (KillBegan); pod is what it was called with. A Machine calls it when the call begins to have effects.
func (a *Agent) Began(kind EntryKind, uid types.UID, pod *v1.Pod, grace *int64) {
	a.run.pulled(kind, pod)
	a.run.note(Entry{Agent: a.agent, Kind: kind, UID: uid, Object: pod, Grace: grace})
}

// Resized notes that a container has that much CPU from now on, in thousandths.
func (a *Agent) Resized(uid types.UID, id string, cpu int64) {
	a.run.note(Entry{Agent: a.agent, Kind: Resized, UID: uid, Call: id, CPU: cpu})
}

// Moment lets one of the moments go by that calls of the outside take: for what
// goes on inside a Machine's client.
func (a *Agent) Moment(what string, uid types.UID) { a.pace(what, uid) }
