package podworker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// The model is the worker's state machine, the pure step, in an environment that makes
// every permitted move: sources, kills and pleg at any moment, calls that take any
// time and have any result, and a runtime that runs what was started. All of its
// states are visited, and each transition into them is checked against the invariants.

// The specs that sources may specify. Other fields do not affect the lifecycle.
var modelSpecs = func() []*v1.Pod {
	spec := func(deletion *int64, phase v1.PodPhase) *v1.Pod {
		p := new(v1.Pod)
		p.Spec.TerminationGracePeriodSeconds = new(int64(30))
		if deletion != nil {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Unix(1, 0)), deletion
		}
		p.Status.Phase = phase
		return p
	}
	return []*v1.Pod{
		spec(nil, v1.PodRunning), spec(nil, v1.PodPending), spec(new(int64(5)), v1.PodRunning), spec(nil, v1.PodFailed),
	}
}()

const (
	digits = "0123456789"
	noSpec = -1
)

// A modelPod is one UID and its environment. It is comparable except for its
// lifecycle, which key converts to a value.
type modelPod struct {
	known     bool
	lifecycle lifecycle

	call     call // in flight
	callSpec int  // the spec passed to it
	canceled bool
	due      bool // queued, or will be when the call has returned
	timer    bool // makes it due at some time
	waiter   bool // the caller of a kill has not been notified

	wanted int  // index of the desired spec, or noSpec
	ended  bool // a kill was requested since it was added
	runs   bool // in the runtime

	// Of this life:
	acked        bool  // Terminating was reached
	grace        int64 // passed to the last Terminate; 0: none
	synced       int   // the spec of the last Sync
	latest       int   // the last desired spec
	own          int   // the same, without specs for the time after a restart
	back         bool  // went back from Finished to Cleaning
	withDeletion bool  // the Cleanup in flight, or the last one, includes the deletion
}

type modelKey struct {
	modelPod
	state                         State
	spec                          int
	orphan, again, mayRun, doomed bool
	end                           ending
	stored                        int64
	cause                         cause
}

func (p modelPod) key() modelKey {
	k := modelKey{modelPod: p, state: p.lifecycle.state, spec: noSpec, orphan: p.lifecycle.orphan != nil, end: p.lifecycle.end,
		again: p.lifecycle.restart != nil, mayRun: p.lifecycle.mayRun, cause: p.lifecycle.cause,
		doomed: p.lifecycle.restart != nil && p.lifecycle.restart.kill != nil}
	for i, spec := range modelSpecs {
		if p.lifecycle.pod == spec {
			k.spec = i
		}
	}
	if p.lifecycle.grace != nil {
		k.stored = *p.lifecycle.grace
	}
	// Fields that no invariant depends on any more do not distinguish states.
	if p.known && p.lifecycle.state >= Stopping {
		k.latest, k.synced = noSpec, min(p.synced, 0)   // no Sync will be; whether there was one counts
		k.ended = p.ended && p.lifecycle.restart != nil // only a create leads to another life, and that clears it
	}
	k.modelPod.lifecycle = lifecycle{}
	return k
}

// A model is pods of one name. The first static ones take turns.
type model struct {
	pods   [2]modelPod
	static bool
	turns  string // indices of those in the queue: "01"
}

type worldKey struct {
	pods  [2]modelKey
	turns string
}

func (m model) key() worldKey {
	return worldKey{[2]modelKey{m.pods[0].key(), m.pods[1].key()}, m.turns}
}

// broken is the violation of an invariant by a step; empty if there is none.
type broken string

// apply applies an input to a pod, as Workers.stepLocked does.
func (m *model) apply(i int, in input) (effect, broken) {
	p := &m.pods[i]
	before := p.lifecycle
	var e effect
	p.lifecycle, e = step(p.lifecycle, in)
	if e.outcome != 0 {
		if p.waiter && p.runs {
			return e, broken("inv-5: the caller of a kill gets \"" + e.outcome.String() + "\", and it runs")
		}
		p.waiter = false
	}
	if e.cancel && p.call != callNone {
		p.canceled = true
	}
	if e.wake {
		p.due, p.timer = true, false
	}
	first := false
	if in, ok := in.(podUpdated); ok {
		first = in.first
	}
	switch was, is := before.state, p.lifecycle.state; {
	case first, is >= was:
	case was == Finished && is == Cleaning && !p.back:
		p.back = true
	default:
		return e, broken(fmt.Sprintf("it goes back from %v to %v", was, is))
	}
	if before.grace != nil && p.lifecycle.grace != nil && *p.lifecycle.grace > *before.grace {
		return e, broken("inv-4: the grace grows")
	}
	if p.lifecycle.state == Finished {
		if p.waiter {
			return e, "it has finished, and the caller of the kill was not notified"
		}
		m.leave(i)
	}
	return e, ""
}

// leave passes the turn to the next pod of the name, as Workers.finishLocked does.
func (m *model) leave(i int) {
	if !strings.Contains(m.turns, digits[i:i+1]) {
		return
	}
	m.turns = strings.Replace(m.turns, digits[i:i+1], "", 1)
	for j := range m.pods {
		if n := &m.pods[j]; strings.HasPrefix(m.turns, digits[j:j+1]) && n.known && n.lifecycle.state == Waiting {
			n.due = true
		}
	}
}

func (m *model) want(i, spec int, create bool) broken {
	p := &m.pods[i]
	in := podUpdated{pod: modelSpecs[spec], create: create, first: !p.known, static: m.static, stopped: !p.runs}
	p.wanted = spec
	if in.first {
		known := emptyPod(p.runs)
		known.known, known.wanted, known.ended = true, p.wanted, p.ended
		*p = known
		if m.static {
			m.turns += digits[i : i+1]
		}
	}
	next := p.lifecycle.restart != nil || create && p.lifecycle.state >= Stopping || p.lifecycle.orphan != nil
	if p.lifecycle.state < Stopping {
		p.latest = spec
	}
	if !next {
		p.own = spec
	}
	_, b := m.apply(i, in)
	return b
}

// emptyPod is a UID without a worker.
func emptyPod(runs bool) modelPod {
	return modelPod{runs: runs, wanted: noSpec, synced: noSpec, latest: noSpec, own: noSpec, callSpec: noSpec}
}

// A move is one possible next event.
type move struct {
	name string
	do   func(*model) broken
}

func (m model) moves(i int) (moves []move) {
	p := m.pods[i]
	add := func(name string, do func(m *model, p *modelPod) broken) {
		moves = append(moves, move{modelNames[i] + name, func(m *model) broken { return do(m, &m.pods[i]) }})
	}
	for spec := range modelSpecs {
		add("create "+digits[spec:spec+1], func(m *model, p *modelPod) broken {
			p.ended = false
			return m.want(i, spec, true)
		})
		if p.wanted != noSpec {
			add("update "+digits[spec:spec+1], func(m *model, _ *modelPod) broken { return m.want(i, spec, false) })
		}
	}
	if p.wanted != noSpec {
		add("remove", func(m *model, p *modelPod) broken {
			p.wanted, p.ended = noSpec, false
			if !p.known {
				return ""
			}
			_, b := m.apply(i, podRemoved{})
			return b
		})
	}
	if p.known && !p.waiter {
		for name, grace := range map[string]*int64{"kill": nil, "kill at once": new(int64(0))} {
			add(name, func(m *model, p *modelPod) broken {
				p.waiter, p.ended = true, p.wanted != noSpec
				_, b := m.apply(i, killed{KillOptions{GracePeriodSeconds: grace, Evict: grace == nil}})
				return b
			})
		}
	}
	switch {
	case !p.known && p.runs && p.wanted == noSpec:
		add("orphan", func(m *model, p *modelPod) broken {
			*p = emptyPod(true)
			p.known = true
			_, b := m.apply(i, orphanFound{orphan: modelOrphan})
			return b
		})
	case !p.known && !p.runs:
		add("runs since an earlier agent", func(_ *model, p *modelPod) broken { p.runs = true; return "" })
	}
	if p.known && p.lifecycle.state == Syncing {
		add("changed", func(_ *model, p *modelPod) broken { p.due = true; return "" })
	}
	return append(moves, m.progress(i)...)
}

var (
	modelOrphan = new(runtime.Pod)
	modelNames  = [...]string{"0: ", "1: "}
)

// progress returns the moves that need no external input.
func (m model) progress(i int) (moves []move) {
	p := m.pods[i]
	add := func(name string, do func(m *model, p *modelPod) broken) {
		moves = append(moves, move{modelNames[i] + name, func(m *model) broken { return do(m, &m.pods[i]) }})
	}
	returns := func(name string, terminal bool, err error) {
		add(p.call.String()+" "+name, func(m *model, p *modelPod) broken {
			in := returned{call: p.call, terminal: terminal, err: err}
			if p.call == callTerminate && err == nil {
				p.runs = false
			}
			p.call, p.callSpec, p.canceled = callNone, noSpec, false
			_, b := m.apply(i, in)
			p.timer = !p.due && p.lifecycle.state != Finished
			if p.lifecycle.state == Finished {
				p.due = false
			}
			return b
		})
	}
	switch {
	case p.call != callNone:
		if !p.canceled {
			returns("succeeds", false, nil)
		}
		if p.call == callSync {
			returns("reports the pod as terminal", true, nil)
		}
		returns("fails", false, errModel)
	case p.due:
		add("turn", func(m *model, p *modelPod) broken { return m.turn(i) })
	case p.timer:
		add("timer", func(_ *model, p *modelPod) broken { p.timer, p.due = false, true; return "" })
	case p.known && p.lifecycle.state == Finished && (p.wanted == noSpec || p.lifecycle.restart != nil):
		add("forget", func(m *model, p *modelPod) broken {
			again, left := p.lifecycle.restart, emptyPod(p.runs)
			left.wanted, left.ended = p.wanted, p.ended
			*p = left
			if p.wanted == noSpec {
				return ""
			}
			b := m.want(i, p.wanted, true)
			if b == "" && again != nil && again.kill != nil {
				_, b = m.apply(i, killed{*again.kill}) // as Workers.Update
			}
			return b
		})
	}
	return moves
}

var errModel = fmt.Errorf("it fails")

// turn starts the call of a due pod.
func (m *model) turn(i int) broken {
	p := &m.pods[i]
	p.due = false
	e, b := m.apply(i, callDue{!m.static || strings.HasPrefix(m.turns, digits[i:i+1])})
	if b != "" {
		return b
	}
	p.call = e.call
	switch e.call {
	case callSync:
		if p.acked {
			return "inv-1: a Sync begins after Terminating was seen"
		}
		if p.lifecycle.orphan != nil {
			return "an orphan is synced"
		}
		if p.ended {
			return "a kill was requested, it was not added since, and it starts"
		}
		p.runs = true // it may start something from now on (inv-2)
		p.synced = p.latest
		if p.lifecycle.pod != modelSpecs[p.latest] {
			return "inv-14: a Sync is given another spec than the last desired one"
		}
		for j := range m.pods {
			if other := m.pods[j]; m.static && j != i && other.known && other.synced != noSpec && other.lifecycle.state < Finished {
				return "inv-3: two static pods of one name have started"
			}
		}
	case callTerminate:
		if p.lifecycle.orphan == nil && p.lifecycle.pod != modelSpecs[p.own] {
			return "pw-14: a Terminate is given the spec of the life after"
		}
		p.acked = true
		if g := p.lifecycle.grace; g != nil {
			if p.grace != 0 && *g > p.grace {
				return "inv-4: a Terminate is given more than the one before"
			}
			p.grace = *g
		}
	case callCleanup:
		if p.lifecycle.pod != modelSpecs[p.own] {
			return "pw-14: a Cleanup is given the spec of the life after"
		}
		p.withDeletion = p.lifecycle.end >= deletionPassed
		if p.runs {
			return "it is cleaned up, and it runs"
		}
	case callNone:
		if p.lifecycle.state != Waiting && p.lifecycle.state != Finished {
			return "its turn leads to nothing"
		}
	}
	return ""
}

// settles lets every pending operation succeed, and returns the violation in the state
// that results.
func (m model) settles() broken {
	for range 60 {
		moved := false
		for i := range m.pods {
			for _, next := range m.progress(i) {
				if strings.HasSuffix(next.name, ": timer") && m.pods[i].lifecycle.state == Syncing {
					continue // the resync, forever
				}
				if b := next.do(&m); b != "" {
					return b
				}
				moved = true
				break // the first is success; a canceled call fails, or reports the pod as terminal
			}
		}
		if !moved {
			break
		}
	}
	for i, p := range m.pods {
		switch {
		case p.waiter:
			return "the caller of the kill is never notified"
		case !p.known:
			if p.runs && p.wanted != noSpec {
				return "it is desired, and has no worker"
			}
		case p.lifecycle.state > Waiting && p.lifecycle.state < Finished && p.lifecycle.state != Syncing:
			return broken(fmt.Sprintf("it stays %v forever", p.lifecycle.state))
		case p.lifecycle.state == Waiting && strings.HasPrefix(m.turns, digits[i:i+1]):
			return "it is first in the queue, and waits forever"
		case p.lifecycle.state == Syncing && p.synced != p.latest:
			return "inv-14: the last spec is never synced"
		case p.lifecycle.state == Finished && p.lifecycle.end >= deletionSet && p.lifecycle.restart == nil && p.acked && !p.withDeletion && p.lifecycle.orphan == nil:
			return "its object is deleted, and no Cleanup included the deletion"
		case p.lifecycle.state == Finished && p.runs:
			return "it has finished, and runs"
		case p.wanted == noSpec:
			return "it is not desired, and not removed"
		}
	}
	return ""
}

// explore visits all states that depth moves of pods reach (0: all reachable states),
// and returns their number.
func explore(t *testing.T, start model, pods, depth int) int {
	t.Helper()
	type node struct {
		m     model
		from  int // index of the one before, which the move led from
		move  string
		depth int
	}
	queue := []node{{m: start, from: -1}}
	path := func(at int) (moves string) {
		for ; queue[at].from >= 0; at = queue[at].from {
			moves = "; " + queue[at].move + moves
		}
		return strings.TrimPrefix(moves, "; ")
	}
	seen := map[worldKey]bool{start.key(): true}
	for head := 0; head < len(queue); head++ {
		n := queue[head]
		if b := n.m.settles(); b != "" {
			require.Fail(t, string(b), "after %s, and all goes well", path(head))
		}
		if depth > 0 && n.depth == depth {
			continue
		}
		for i := range pods {
			for _, next := range n.m.moves(i) {
				m := n.m
				if b := next.do(&m); b != "" {
					require.Fail(t, string(b), "by %s; %s", path(head), next.name)
				}
				if key := m.key(); !seen[key] {
					seen[key] = true
					queue = append(queue, node{m, head, next.name, n.depth + 1})
				}
			}
		}
	}
	return len(seen)
}

func newModel(static bool) model {
	m := model{static: static}
	for i := range m.pods {
		m.pods[i] = emptyPod(false)
	}
	return m
}

func TestEveryStateOfALifecycleKeepsTheInvariants(t *testing.T) { // inv-1, inv-2, inv-4, inv-5, inv-14
	t.Logf("%d states of one pod: all there are", explore(t, newModel(false), 1, 0))
}

func TestEveryStateOfStaticPodsOfOneNameKeepsTheInvariants(t *testing.T) { // inv-3, pw-29 … pw-32
	t.Logf("%d states within 8 moves of one static pod", explore(t, newModel(true), 1, 8))
	t.Logf("%d states within 5 moves of two static pods of one name", explore(t, newModel(true), 2, 5))
}
