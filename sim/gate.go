package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A gate is what one agent sees of the world: each call it makes of the outside
// (runtime, sink, sources) goes through it. Once the agent is killed, its calls
// have no effect and come back only when their context ends.
type gate struct {
	run   *run
	agent int // the first is 1

	// Guarded by run.mu.
	dead   bool
	counts map[outside]uint64 // calls so far

	done <-chan struct{} // closed at the end of the agent's context, which
	kill func()          // brings about
}

// pace is a call of the outside that does nothing, and nothing happens to: see
// there.
func (g *gate) pace(what string, uid types.UID) {
	t := time.NewTimer(g.step(what, uid))
	defer t.Stop()
	select {
	case <-t.C:
	case <-g.done:
	}
}

// later has do done after a moment, if the agent lives then.
func (g *gate) later(what string, uid types.UID, do func()) {
	time.AfterFunc(g.step(what, uid), func() {
		if !g.isDead() {
			do()
		}
	})
}

// step returns how long a step inside the agent takes.
func (g *gate) step(what string, uid types.UID) time.Duration {
	n := g.number(outside{what, uid})
	return moment(g.run.dice(4, uint64(g.agent), n, what, string(uid))) / 16
}

// number returns how many calls of that kind there have been, this one included.
func (g *gate) number(what outside) uint64 {
	g.run.mu.Lock()
	defer g.run.mu.Unlock()
	g.counts[what]++
	return g.counts[what]
}

// An outside is a kind of calls of the outside: their numbers, and with them
// what chance has in store for each, don't depend on what else goes on.
type outside struct {
	method string
	uid    types.UID
}

// errFault is what a call fails with that a Fault step hits.
var errFault = errors.New("a simulated fault")

// hangs is how long a call hangs if nobody gives it up: the time-out of whoever
// makes the call.
const hangs = 2 * time.Minute

// call makes a call of the outside: do is its effect. Each call takes a moment
// before its effect and another one after it, drawn from the seed and from the
// call, not from the order in which goroutines run; that no two calls of a run
// do anything at the same instant is what makes runs repeatable.
func (g *gate) call(ctx context.Context, method string, uid types.UID, do func() error) error {
	r := g.run
	what := outside{method, uid}
	n := g.number(what)
	dice := func(salt uint64) uint64 { return r.dice(salt, uint64(g.agent), n, method, string(uid)) }

	if err := pause(ctx, moment(dice(0))); err != nil {
		return err
	}
	kind, delay := r.fault(what, dice)
	killer, dies := g.reached()
	if dies {
		return g.gone(ctx)
	}
	switch kind {
	case Error:
		return g.failed(what, runtime.ErrUnavailable)
	case Hung:
		if err := pause(ctx, hangs); err != nil {
			return err
		}
		return g.failed(what, context.DeadlineExceeded)
	case Slow:
		if err := pause(ctx, delay); err != nil {
			return err
		}
	}
	if g.isDead() {
		return g.gone(ctx)
	}
	err := do()
	if killer {
		g.die()
	}
	if g.isDead() {
		return g.gone(ctx)
	}
	if kind == Lost && err == nil {
		err = g.failed(what, context.DeadlineExceeded)
	}
	if late := pause(ctx, moment(dice(1))); late != nil && err == nil {
		return late
	}
	return err
}

// failed notes that a fault hit a call.
func (g *gate) failed(what outside, why error) error {
	err := errors.Join(errFault, why)
	g.run.note(Entry{Agent: g.agent, Kind: Called, Call: what.method, UID: what.uid, Err: why.Error()})
	return err
}

// reached is called when a call is about to have its effect. It reports whether
// the agent dies of it afterwards (killer), or is dead now.
func (g *gate) reached() (killer, dies bool) {
	r := g.run
	r.mu.Lock()
	if g.dead {
		r.mu.Unlock()
		return false, true
	}
	k := r.pending
	if k == nil || k.gate != g {
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
	g.die()
	return false, true
}

// die kills the agent.
func (g *gate) die() {
	r := g.run
	r.mu.Lock()
	if g.dead {
		r.mu.Unlock()
		return
	}
	g.dead = true
	kill := g.kill
	r.mu.Unlock()
	r.note(Entry{Agent: g.agent, Kind: AgentDied})
	kill()
}

func (g *gate) isDead() bool {
	g.run.mu.Lock()
	defer g.run.mu.Unlock()
	return g.dead
}

// gone is how calls of a dead agent end.
func (g *gate) gone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// moment returns a time between 20 µs and 2 ms.
func moment(dice uint64) time.Duration {
	return 20*time.Microsecond + time.Duration(dice%1_980_000)
}

// dice returns a number drawn from the seed and what it is asked for.
func (r *run) dice(salt, a, b uint64, words ...string) uint64 {
	h := fnv.New64a()
	var buf [32]byte
	binary.LittleEndian.PutUint64(buf[0:], r.cfg.Seed)
	binary.LittleEndian.PutUint64(buf[8:], salt)
	binary.LittleEndian.PutUint64(buf[16:], a)
	binary.LittleEndian.PutUint64(buf[24:], b)
	h.Write(buf[:])
	for _, w := range words {
		h.Write([]byte(w))
		h.Write([]byte{0})
	}
	x := h.Sum64() // its low bits alone are poor
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// A window is a Fault step while it lasts.
type window struct {
	step  Step
	index uint64 // of the step
	until time.Time
}

// sinkCalls are the methods that Fault steps for "sink" hit; those for "runtime"
// hit all others but hints and sources.
var sinkCalls = []string{"UpdatePodStatus", "DeletePod"}

func (w window) hits(what outside) bool {
	switch w.step.Calls {
	case what.method:
		return true
	case "sink":
		return slices.Contains(sinkCalls, what.method)
	case "runtime":
		return !slices.Contains(sinkCalls, what.method) && what.method != hintsCall && what.method != sourceCall
	default:
		return false
	}
}

// The names of calls that are no methods.
const (
	hintsCall  = "hints"
	sourceCall = "source"
)

// fault returns what goes wrong with a call that is made now.
func (r *run) fault(what outside, dice func(uint64) uint64) (FaultKind, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, w := range r.windows {
		if now.Before(w.until) && w.hits(what) && int(dice(2+w.index)%100) < w.step.Percent {
			return w.step.Kind, w.step.Delay
		}
	}
	return "", 0
}

// pause waits for d, or for the end of ctx, which is an error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
