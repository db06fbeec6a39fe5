package sim

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/pause"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Config says what is simulated. The zero value is the schedule that is drawn
// from seed 0.
type Config struct {
	// Seed is what chance is made of: the Schedule, if there is none, and the
	// moments that calls take.
	Seed uint64

	// Schedule is what happens. Nil: Draw(Seed, Options).
	Schedule Schedule

	// Options of the Draw.
	Options Options

	// Machine makes what runs the containers. Nil: Memory.
	Machine func(Setup) (Machine, error)

	// Settle is how long after the last step, and the end of the last fault, the
	// node has to come to rest. Zero: 10 minutes.
	Settle time.Duration

	// Each is called with every entry of the trace as it comes, one at a time.
	// It must not block. Nil: nobody listens.
	Each func(Entry)
}

// A Report is what came of a run.
type Report struct {
	Seed       uint64
	Schedule   Schedule
	Trace      []Entry
	Violations []Violation

	// Took is how much virtual time went by.
	Took time.Duration

	// Agents is how many there were, one after the other.
	Agents int
}

// Run simulates a node. It has to be called in a testing/synctest bubble to
// take no time; without one, it takes as long as it says. It returns when every
// goroutine that it started has returned. An error says that the schedule could
// not be run, not that a law was broken.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if cfg.Schedule == nil {
		cfg.Schedule = Draw(cfg.Seed, cfg.Options)
	}
	if cfg.Settle == 0 {
		cfg.Settle = 10 * time.Minute
	}
	r := &run{cfg: cfg, start: time.Now(), store: newStore(), truth: newTruth(), images: cfg.Schedule.images(), present: map[string]bool{}}
	if cfg.Machine == nil {
		cfg.Machine = Memory
	}
	var err error
	if cfg.Schedule.recorded() {
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
	if m, ok := r.machine.(interface{ Remembers() bool }); ok {
		r.truth.remembers = m.Remembers()
	}
	for _, law := range Invariants() {
		r.judges = append(r.judges, judge{law.Name, law.lists, law.begin(r.truth)})
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- r.agents(ctx) }()
	err = r.steps(ctx)
	if err == nil {
		err = r.settle(ctx)
	}
	if err == nil {
		r.rest()
	}
	r.note(Entry{Kind: RunEnded})
	cancel()
	if agentErr := <-failed; err == nil {
		err = agentErr
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Report{
		Seed: cfg.Seed, Schedule: cfg.Schedule, Trace: r.trace, Violations: r.violations,
		Took: time.Since(r.start), Agents: r.generation,
	}, err
}

// A run is one simulation.
type run struct {
	cfg     Config
	start   time.Time
	store   *store
	machine Machine
	images  map[string]Behaviour // what containers do, by image
	dir     string               // of what agents record; empty: nothing

	// mu guards the fields below. Nothing is called under it but the laws.
	mu         sync.Mutex
	truth      *truth
	judges     []judge
	trace      []Entry
	violations []Violation
	windows    []window
	generation int    // of the last agent
	agent      *Agent // that runs; nil: none does
	node       *Node  // that agent
	pending    *doom  // of the agent that runs
	room       int    // for how many pods; zero: any number

	present map[string]bool // images on the node, if the machine has none of its own
}

type judge struct {
	law   string
	lists bool
	check func(*Entry) string
}

// A doom is a Kill step that waits for its call.
type doom struct {
	agent *Agent
	step  Step
}

// note adds an entry to the trace, and holds the laws against it.
func (r *run) note(e Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLocked(e)
}

func (r *run) noteLocked(e Entry) {
	now := time.Now()
	e.At = now.Sub(r.start)
	r.truth.take(&e, now)
	if e.UID != "" && e.Pod == "" {
		e.Pod = r.truth.pod(e.UID).name
	}
	r.appendLocked(e)
	for _, j := range r.judges {
		if what := j.check(&e); what != "" && !(j.lists && r.truth.fooled()) {
			v := Violation{At: e.At, Law: j.law, UID: e.UID, What: what}
			r.violations = append(r.violations, v)
			r.appendLocked(Entry{At: e.At, Kind: LawBroken, UID: e.UID, Pod: e.Pod, Broken: &v})
		}
	}
}

func (r *run) appendLocked(e Entry) {
	r.trace = append(r.trace, e)
	if r.cfg.Each != nil {
		r.cfg.Each(e)
	}
}

// agents runs one agent after the other until ctx ends.
func (r *run) agents(ctx context.Context) error {
	for ctx.Err() == nil {
		down, err := r.live(ctx)
		if err != nil {
			return err
		}
		if pause.For(ctx, down) != nil {
			break
		}
	}
	return nil
}

// live runs one agent, until it is killed or ctx ends, and returns how long it
// is before the next one.
func (r *run) live(ctx context.Context) (down time.Duration, err error) {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	r.mu.Lock()
	r.generation++
	a := &Agent{run: r, agent: r.generation, counts: map[Call]uint64{}, done: ctx.Done(), kill: kill, collect: make(chan struct{}, 1)}
	r.mu.Unlock()

	rt, err := r.machine.Connect(a)
	if err != nil {
		return 0, fmt.Errorf("sim: connect to the runtime: %w", err)
	}
	look := func(name string) func(ctx context.Context, list func()) error {
		return func(ctx context.Context, list func()) error {
			return a.Call(ctx, Call{Method: sourceCall, Of: name}, func() error { list(); return nil })
		}
	}
	volumes, err := r.newVolumes(a)
	if err != nil {
		return 0, err
	}
	inbox := new(podworker.Inbox)
	images, err := r.newImages(a, rt, inbox)
	if err != nil {
		return 0, err
	}
	allocated, err := r.newAllocation(a, inbox)
	if err != nil {
		return 0, err
	}
	var synced func(types.UID)
	if images != nil {
		synced = func(uid types.UID) {
			if !a.ended() {
				r.note(Entry{Agent: a.agent, Kind: SyncEnded, UID: uid})
			}
		}
	}
	node, err := NewNode(NodeConfig{
		volumes: volumes, images: images, collect: a.collect, allocated: allocated, inbox: inbox, synced: synced,
		pace: a.pace, later: a.later,
		noticed: func(e pleg.Event) {
			r.note(Entry{Agent: a.agent, Kind: Noticed, UID: e.UID, Event: &e})
		},
		follow: func(e pleg.Event) {
			t := time.NewTimer(followerPause(r.cfg.Seed, e))
			defer t.Stop()
			select {
			case <-t.C:
			case <-a.done:
				return
			}
			r.note(Entry{Agent: a.agent, Kind: Followed, UID: e.UID, Event: &e})
		},
		Runtime: rt,
		Sources: map[string]podsource.PodSource{
			podsource.APISource:  storeSource{store: r.store, look: look(podsource.APISource)},
			podsource.FileSource: storeSource{store: r.store, static: true, look: look(podsource.FileSource)},
		},
		Sink:   sink{r, a},
		Admit:  &capacity{run: r, agent: a, in: map[types.UID]bool{}},
		probes: prober.Handlers{Exec: probeHandler{a}},
		spread: func() float64 {
			return float64(dice(r.cfg.Seed, 7, uint64(a.agent), uint64(time.Since(r.start)))>>11) / (1 << 53)
		},
		Jitter: func(d time.Duration) time.Duration {
			return d + d/1000*time.Duration(dice(r.cfg.Seed, 3, uint64(a.agent), uint64(time.Since(r.start)))%500)
		},
	})
	if err != nil {
		return 0, fmt.Errorf("sim: make the node: %w", err)
	}
	r.mu.Lock()
	r.noteLocked(Entry{Kind: AgentBegan, Agent: a.agent})
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

// A sink is the API as an agent tells it statuses.
type sink struct {
	run   *run
	agent *Agent
}

func (s sink) UpdatePodStatus(ctx context.Context, pod *v1.Pod, status v1.PodStatus) error {
	return s.call(ctx, Call{Method: "UpdatePodStatus", UID: pod.UID}, func() error {
		s.run.note(Entry{Kind: Said, Agent: s.agent.agent, Pod: pod.Name, UID: pod.UID, Object: pod, Status: status.DeepCopy()})
		return s.run.store.UpdatePodStatus(ctx, pod, status)
	})
}

func (s sink) DeletePod(ctx context.Context, pod *v1.Pod) error {
	return s.call(ctx, Call{Method: "DeletePod", UID: pod.UID}, func() error {
		s.run.note(Entry{Kind: SaidDeleted, Agent: s.agent.agent, Pod: pod.Name, UID: pod.UID, Object: pod})
		before, _ := s.run.store.get(pod.UID)
		err := s.run.store.DeletePod(ctx, pod)
		if after, _ := s.run.store.get(pod.UID); before != nil && after == nil {
			s.run.note(Entry{Kind: Gone, Pod: pod.Name, UID: pod.UID, Object: before})
		}
		return err
	})
}

// steps takes the steps at their times.
func (r *run) steps(ctx context.Context) error {
	for i, step := range r.cfg.Schedule {
		if err := pause.For(ctx, time.Until(r.start.Add(step.At))); err != nil {
			return err
		}
		r.note(Entry{Kind: StepTaken, Pod: step.Pod, UID: step.uid(), Step: &step})
		r.take(ctx, uint64(i), step)
	}
	return nil
}

// settle ends all faults when they are over, and gives the node time.
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
	if r.pending != nil && !r.pending.agent.dead { // who is dead has yet to see how long
		r.pending = nil
	}
	r.noteLocked(Entry{Kind: FaultsOver})
	r.mu.Unlock()
	return pause.For(ctx, r.cfg.Settle)
}

// rest holds every pod against what should have become of it.
func (r *run) rest() {
	r.ask()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, uid := range slices.Sorted(maps.Keys(r.truth.pods)) {
		r.noteLocked(Entry{Kind: Rested, UID: uid})
	}
}

// take takes one step.
func (r *run) take(ctx context.Context, index uint64, s Step) {
	uid := s.uid()
	switch s.Do {
	case Add:
		r.add(s)
	case Change:
		pod := r.store.change(uid, func(pod *v1.Pod) bool { return setImage(pod, s.Container, s.Does.Image()) })
		if pod != nil {
			r.note(Entry{Kind: Changed, Pod: pod.Name, UID: uid, Object: pod})
		}
	case Resize:
		if pod := r.store.resize(uid, s.Container, s.CPU); pod != nil {
			r.note(Entry{Kind: ResizeAsked, Pod: pod.Name, UID: uid, Object: pod})
		}
	case Delete:
		var grace *int64
		if s.Grace > 0 {
			grace = new(s.Grace)
		}
		pod, gone := r.store.delete(uid, grace)
		switch {
		case pod != nil && gone:
			r.note(Entry{Kind: Gone, Pod: pod.Name, UID: uid, Object: pod})
		case pod != nil:
			r.note(Entry{Kind: Deleting, Pod: pod.Name, UID: uid, Object: pod})
		}
	case Vanish:
		if pod := r.store.drop(uid); pod != nil {
			r.note(Entry{Kind: Gone, Pod: pod.Name, UID: uid, Object: pod})
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
		r.fail(uid)
	case Room:
		r.mu.Lock()
		r.room = s.Count
		r.mu.Unlock()
	case Collect:
		r.mu.Lock()
		if a := r.agent; a != nil {
			select {
			case a.collect <- struct{}{}:
			default: // it is going to
			}
		}
		r.mu.Unlock()
	case Evict:
		r.mu.Lock()
		node, agent := r.node, r.generation
		r.mu.Unlock()
		if node != nil {
			r.note(Entry{Kind: Evicted, Agent: agent, UID: uid})
			opts := podworker.KillOptions{Evict: true, Termination: runtime.Termination{Failed: true, Reason: "Evicted", Message: "The node was low on resource"}}
			if s.Grace > 0 {
				opts.GracePeriodSeconds = new(s.Grace)
			}
			node.Evict(uid, opts)
		}
	case Fault:
		r.mu.Lock()
		r.windows = append(r.windows, window{s, index, time.Now().Add(s.For)})
		r.mu.Unlock()
		if s.outage() {
			time.AfterFunc(s.For-time.Second, r.ask) // the run goes on for longer
		}
	case Kill:
		r.mu.Lock()
		a := r.agent
		free := a != nil && r.pending == nil
		if free {
			r.pending = &doom{a, s}
		}
		r.mu.Unlock()
		if free && s.Count == 0 {
			a.die()
		}
	}
}

// add lets a pod be wanted.
func (r *run) add(s Step) {
	pod := s.Shape.Pod(s.Pod, s.uid())
	r.mu.Lock()
	pod.Annotations = map[string]string{lifeAnnotation: strconv.Itoa(r.truth.pod(pod.UID).lives + 1)}
	r.mu.Unlock()
	if !s.Shape.Static {
		if r.store.create(pod) {
			r.note(Entry{Kind: Wanted, Pod: pod.Name, UID: pod.UID, Object: pod})
		}
		return
	}
	if other, _ := r.store.get(pod.UID); other != nil {
		return // the UID is taken
	}
	for _, old := range r.store.list(true) {
		if old.Name == pod.Name {
			r.note(Entry{Kind: Gone, Pod: old.Name, UID: old.UID, Object: old})
		}
	}
	r.store.write(pod)
	r.note(Entry{Kind: Wanted, Pod: pod.Name, UID: pod.UID, Object: pod, Static: true})
}

// setImage gives the named container the image, and reports whether that is a
// change.
func setImage(pod *v1.Pod, container, image string) bool {
	c := podspec.Container(pod, container)
	if c == nil || c.Image == image {
		return false
	}
	c.Image = image
	return true
}
