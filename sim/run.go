package sim

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/pause"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/status"
)

// Config configures a simulation. The zero value runs the schedule that is drawn
// from seed 0.
type Config struct {
	// Seed determines the Schedule, if that is nil, and the latencies of calls.
	Seed uint64

	// Schedule lists the steps. If nil, Draw(Seed, Options) is used.
	Schedule Schedule

	// Options are passed to Draw.
	Options Options

	// Machine makes the Machine that runs the containers. If nil, Memory is used.
	Machine func(Setup) (Machine, error)

	// Client is called once per run, and returns the function that returns the source and the sink of each agent: those of
	// an API client, which is simulated with the agents. If nil, agents have the API itself as their source and sink.
	Client func() ClientFunc

	// Settle is the time that the node has to reach its final state, after the last
	// step and the end of the last fault. Zero means 10 minutes.
	Settle time.Duration

	// OnEntry is called with every entry of the trace when it is added, one at a time.
	// It must not block. If nil, it is not called.
	OnEntry func(Entry)
}

// A Report is the result of a run.
type Report struct {
	Seed       uint64
	Schedule   Schedule
	Trace      []Entry
	Violations []Violation

	// Duration is the virtual time that the run took.
	Duration time.Duration

	// Agents is the number of agents that were started, one after the other.
	Agents int
}

// Run simulates a node. It must be called in a testing/synctest bubble, or in a program
// with virtualtime.Run; otherwise it takes the simulated time. It blocks until every
// goroutine that it started has returned. It returns an error if the schedule could not be
// run, not if an invariant was violated.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if cfg.Schedule == nil {
		cfg.Schedule = Draw(cfg.Seed, cfg.Options)
	}
	if cfg.Settle == 0 {
		cfg.Settle = 10 * time.Minute
	}
	r := &run{cfg: cfg, start: time.Now(), store: newStore(), truth: newTruth(), claims: newClaimPlane(), images: cfg.Schedule.images(), presentImages: map[string]bool{}}
	if cfg.Machine == nil {
		cfg.Machine = Memory
	}
	if cfg.Client != nil {
		r.client = cfg.Client()
	}
	var err error
	if cfg.Schedule.needsDir() {
		if r.dir, err = memoryDir(); err != nil {
			return nil, fmt.Errorf("sim: %w", err)
		}
		defer os.RemoveAll(r.dir)
	}
	r.machine, err = cfg.Machine(Setup{
		Seed: cfg.Seed, Images: r.images, Observe: func(f Fact) { r.note(f.entry()) },
	})
	if err != nil {
		return nil, fmt.Errorf("sim: make the machine: %w", err)
	}
	if m, ok := r.machine.(interface{ KeepsRecords() bool }); ok {
		r.truth.keepsRecords = m.KeepsRecords()
	}
	if m, ok := r.machine.(interface{ RunsHooks() bool }); ok {
		r.truth.runsHooks = m.RunsHooks()
	}
	for _, inv := range Invariants() {
		r.checks = append(r.checks, invariantCheck{inv.Name, inv.requiresCurrentLists, inv.newCheck(r.truth)})
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The steps at the start precede the first agent, in every run.
	start := slices.IndexFunc(cfg.Schedule, func(s Step) bool { return s.At > 0 })
	if start < 0 {
		start = len(cfg.Schedule)
	}
	err = r.steps(ctx, 0, start)
	failed := make(chan error, 1)
	go func() { failed <- r.runAgents(ctx) }()
	if err == nil {
		err = r.steps(ctx, start, len(cfg.Schedule))
	}
	if err == nil {
		err = r.settle(ctx)
	}
	if err == nil {
		r.checkSettled()
	}
	r.note(Entry{Kind: RunEnded})
	cancel()
	if agentErr := <-failed; err == nil {
		err = agentErr
	}
	r.background.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Report{
		Seed: cfg.Seed, Schedule: cfg.Schedule, Trace: r.trace, Violations: r.violations,
		Duration: time.Since(r.start), Agents: r.generation,
	}, err
}

// A run is one simulation.
type run struct {
	cfg     Config
	start   time.Time
	store   *store
	machine Machine
	client  ClientFunc // nil: none
	claims  *claimPlane
	images  map[string]fake.Behavior // behavior of containers, by image
	dir     string                   // checkpoints of the agents; empty: they have none

	// mu guards the fields below. Only invariant checks and OnEntry are called with mu
	// held.
	mu          sync.Mutex
	truth       *truth
	checks      []invariantCheck
	trace       []Entry
	violations  []Violation
	windows     []faultWindow
	generation  int          // number of agents so far
	latest      *Agent       // the last agent; nil: none yet
	agent       *Agent       // the running agent; nil: none
	node        *Node        // of agent
	pending     *pendingKill // of agent
	podCapacity int          // maximum number of pods; zero: no limit

	presentImages map[string]bool // images on the node, if the machine does not manage images
	saved         savedPods

	background sync.WaitGroup // calls that steps have begun
}

type invariantCheck struct {
	name                 string
	requiresCurrentLists bool
	check                func(*Entry) string
}

// A pendingKill is a Kill step that waits for its call.
type pendingKill struct {
	agent *Agent
	step  Step
}

// note adds an entry to the trace and checks the invariants. An entry of an agent that
// has been killed, or whose context is done, is discarded: then note returns false, and
// the caller must not apply the effect that the entry describes.
func (r *run) note(e Entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.noteLocked(e)
}

func (r *run) noteLocked(e Entry) bool {
	if e.Agent > 0 && e.Kind != AgentKilled && (r.latest == nil || e.Agent != r.latest.agent || r.latest.endedLocked()) {
		return false
	}
	now := time.Now()
	e.At = now.Sub(r.start)
	r.truth.apply(&e, now)
	if e.UID != "" && e.Pod == "" {
		e.Pod = r.truth.pod(e.UID).name
	}
	r.appendLocked(e)
	for _, v := range r.truth.violations(r.checks, &e) {
		r.violations = append(r.violations, v)
		r.appendLocked(Entry{At: e.At, Kind: InvariantViolated, UID: e.UID, Pod: e.Pod, Violation: &v})
	}
	return true
}

func (r *run) appendLocked(e Entry) {
	r.trace = append(r.trace, e)
	if r.cfg.OnEntry != nil {
		r.cfg.OnEntry(e)
	}
}

// runAgents runs one agent after the other until ctx is done.
func (r *run) runAgents(ctx context.Context) error {
	for ctx.Err() == nil {
		down, err := r.runAgent(ctx)
		if err != nil {
			return err
		}
		if pause.For(ctx, down) != nil {
			break
		}
		if r.stepsNow() && pause.For(ctx, time.Nanosecond) != nil { // they precede the agent, as those at the start do
			break
		}
	}
	return nil
}

// stepsNow reports whether the schedule has a step at this instant.
func (r *run) stepsNow() bool {
	now := time.Since(r.start)
	return slices.ContainsFunc(r.cfg.Schedule, func(s Step) bool { return s.At == now })
}

// runAgent runs one agent until it is killed or ctx is done. It returns the time until
// the next agent starts.
func (r *run) runAgent(ctx context.Context) (down time.Duration, err error) {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	r.mu.Lock()
	r.generation++
	a := &Agent{run: r, agent: r.generation, counts: map[Call]uint64{}, done: ctx.Done(), kill: kill, collect: make(chan struct{}, 1)}
	r.latest = a
	r.mu.Unlock()

	node, err := r.newNode(a)
	if err != nil {
		return 0, err
	}
	r.mu.Lock()
	r.noteLocked(Entry{Kind: AgentStarted, Agent: a.agent})
	r.agent, r.node = a, node
	r.mu.Unlock()

	err = node.Run(ctx)
	if err != nil {
		return 0, fmt.Errorf("sim: agent %d: %w", a.agent, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agent, r.node = nil, nil
	if r.pending != nil && r.pending.agent == a {
		down = r.pending.step.Down
		r.pending = nil
	}
	return down, nil
}

// newNode returns the node that an agent runs: its subsystems, whose calls to the outside go through the agent, and
// whose steps have latencies.
func (r *run) newNode(a *Agent) (*Node, error) {
	rt, err := r.machine.Connect(a)
	if err != nil {
		return nil, fmt.Errorf("sim: connect to the runtime: %w", err)
	}
	if a.checkpointer, err = checkpointerOf(rt); err != nil {
		return nil, err
	}
	listThrough := func(name string) func(ctx context.Context, list func()) error {
		return func(ctx context.Context, list func()) error {
			return a.Call(ctx, Call{Method: sourceCall, ID: name}, func() error { list(); return nil })
		}
	}
	volumes, err := r.newVolumes(a)
	if err != nil {
		return nil, err
	}
	table := new(podworker.Table)
	images, err := r.newImages(a, rt, table)
	if err != nil {
		return nil, err
	}
	allocated, err := r.newAllocation(a, table)
	if err != nil {
		return nil, err
	}
	claims, err := r.newClaims(a)
	if err != nil {
		return nil, err
	}
	if claims != nil {
		rt = claimsRuntime{rt, claims}
	}
	var source podsource.PodSource = storeSource{store: r.store, list: listThrough(podsource.APISource)}
	var statuses status.Sink = sink{writes{r, a}}
	if r.client != nil {
		if source, statuses, err = r.client(a, storeSource{store: r.store}, writes{r, a}); err != nil {
			return nil, fmt.Errorf("sim: make the client: %w", err)
		}
	}
	var synced func(types.UID)
	if images != nil {
		synced = func(uid types.UID) { r.note(Entry{Agent: a.agent, Kind: SyncPodReturned, UID: uid}) }
	}
	node, err := NewNode(NodeConfig{
		volumes: volumes, images: images, collect: a.collect, allocated: allocated, claims: claims, table: table, onSynced: synced,
		pace: a.pace, later: a.later,
		onEvent: func(e pleg.Event) {
			r.note(Entry{Agent: a.agent, Kind: EventReceived, UID: e.UID, Event: &e})
		},
		onFollowed: func(e pleg.Event) {
			t := time.NewTimer(followerPause(r.cfg.Seed, e))
			defer t.Stop()
			select {
			case <-t.C:
			case <-a.done:
				return
			}
			r.note(Entry{Agent: a.agent, Kind: EventFollowed, UID: e.UID, Event: &e})
		},
		Runtime: rt,
		Sources: map[string]podsource.PodSource{
			podsource.APISource:  source,
			podsource.FileSource: storeSource{store: r.store, static: true, list: listThrough(podsource.FileSource)},
		},
		Static: []string{podsource.FileSource},
		Sink:   statuses,
		Admit:  &podCapacity{run: r, agent: a, admitted: map[types.UID]bool{}},
		probes: prober.Handlers{Exec: probeHandler{a}},
		spread: func() float64 {
			return float64(hash(r.cfg.Seed, 7, uint64(a.agent), uint64(time.Since(r.start)))>>11) / (1 << 53)
		},
		jitter: func(d time.Duration) time.Duration {
			return d + d/1000*time.Duration(hash(r.cfg.Seed, 3, uint64(a.agent), uint64(time.Since(r.start)))%500)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("sim: make the node: %w", err)
	}
	return node, nil
}

// steps applies the steps from one index to another, exclusively, at their times.
func (r *run) steps(ctx context.Context, from, to int) error {
	for i, step := range r.cfg.Schedule[from:to] {
		if err := pause.For(ctx, time.Until(r.start.Add(step.At))); err != nil {
			return err
		}
		r.note(Entry{Kind: StepTaken, Pod: step.Pod, UID: step.podUID(), Step: &step})
		r.apply(ctx, uint64(from+i), step)
	}
	return nil
}

// settle waits for the end of all faults, then for Config.Settle.
func (r *run) settle(ctx context.Context) error {
	r.mu.Lock()
	var until time.Time
	for _, w := range r.windows {
		if w.until.After(until) {
			until = w.until
		}
	}
	r.mu.Unlock()
	if err := pause.For(ctx, time.Until(until)); err != nil {
		return err
	}
	r.mu.Lock()
	r.windows = nil
	if r.pending != nil && !r.pending.agent.dead { // runAgent still reads Down of a dead agent
		r.pending = nil
	}
	r.noteLocked(Entry{Kind: FaultsEnded})
	r.mu.Unlock()
	return pause.For(ctx, r.cfg.Settle)
}

// checkSettled adds the entries at which the invariants of the final state are checked.
func (r *run) checkSettled() {
	r.checkHealth()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, uid := range slices.Sorted(maps.Keys(r.truth.pods)) {
		r.noteLocked(Entry{Kind: PodSettled, UID: uid})
	}
}

// apply applies one step.
func (r *run) apply(ctx context.Context, index uint64, s Step) {
	uid := s.podUID()
	switch s.Do {
	case Add:
		r.add(s)
	case Change:
		pod := r.store.update(uid, func(pod *v1.Pod) bool { return setImage(pod, s.Container, Image(s.Behavior)) })
		if pod != nil {
			r.note(Entry{Kind: PodChanged, Pod: pod.Name, UID: uid, Object: pod})
		}
	case Resize:
		if pod := r.store.resize(uid, s.Container, s.CPU); pod != nil {
			r.note(Entry{Kind: ResizeRequested, Pod: pod.Name, UID: uid, Object: pod})
		}
	case Delete:
		var grace *int64
		if s.Grace > 0 {
			grace = new(s.Grace)
		}
		pod, gone := r.store.delete(uid, grace)
		switch {
		case pod != nil && gone:
			r.note(Entry{Kind: PodRemoved, Pod: pod.Name, UID: uid, Object: pod})
		case pod != nil:
			r.note(Entry{Kind: DeletionRequested, Pod: pod.Name, UID: uid, Object: pod})
		}
	case Vanish:
		if pod := r.store.remove(uid); pod != nil {
			r.note(Entry{Kind: PodRemoved, Pod: pod.Name, UID: uid, Object: pod})
		}
	case Exit:
		r.machine.Exit(uid, s.Container, s.Code, false)
	case OOM:
		r.machine.Exit(uid, s.Container, 137, true)
	case Hang:
		r.machine.Hang(uid, s.Container)
	case Crash:
		r.machine.Crash(uid)
	case Remove:
		r.machine.Remove(ctx, uid)
	case Reboot:
		r.reboot(s)
	case Fail:
		r.markFailed(uid)
	case Room:
		r.mu.Lock()
		r.podCapacity = s.Count
		r.mu.Unlock()
	case Collect:
		r.mu.Lock()
		if a := r.agent; a != nil {
			select {
			case a.collect <- struct{}{}:
			default: // a collection is due already
			}
		}
		r.mu.Unlock()
	case Checkpoint:
		r.checkpoint(ctx, uid)
	case Restore:
		r.restore(s)
	case Evict:
		r.mu.Lock()
		node, agent := r.node, r.generation
		r.mu.Unlock()
		if node != nil {
			if !r.note(Entry{Kind: Evicted, Agent: agent, UID: uid}) {
				return
			}
			opts := podworker.KillOptions{Evict: true, Termination: runtime.Termination{Failed: true, Reason: "Evicted", Message: "The node was low on resource"}}
			if s.Grace > 0 {
				opts.GracePeriodSeconds = new(s.Grace)
			}
			node.Evict(uid, opts)
		}
	case Fault:
		r.mu.Lock()
		r.windows = append(r.windows, faultWindow{s, index, time.Now().Add(s.For)})
		r.mu.Unlock()
		if s.outage() {
			time.AfterFunc(s.For-time.Second, r.checkHealth) // the run lasts longer than the fault
		}
	case Kill:
		r.mu.Lock()
		a := r.agent
		free := a != nil && r.pending == nil
		if free {
			r.pending = &pendingKill{a, s}
		}
		r.mu.Unlock()
		if free && s.Count == 0 {
			a.die()
		}
	}
}
