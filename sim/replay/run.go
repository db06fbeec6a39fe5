package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/sim/timeline"
	"github.com/kubeparts/kubeparts/sim/virtualtime"
)

// Options configure a replay. The zero value replays the whole recording.
type Options struct {
	// Pod is the only pod to replay: "namespace/name". Empty means all pods.
	Pod string

	// Until is the time at which the replay ends, since Header.Start. Zero means the end of
	// the recording.
	Until time.Duration

	// Tolerance is the largest difference of the times of a recorded and a replayed action. Zero
	// means 5 seconds.
	Tolerance time.Duration

	// Speed is the number of seconds of the recording that are replayed in a second, for a debugger or
	// logs that are followed. Zero means as fast as possible.
	Speed float64

	// Dir is an existing directory for the state of the agent, in which a directory is created and
	// removed. Empty means a directory in memory if the system has /dev/shm.
	Dir string

	// Adjust changes the configurations of the agent, for example to those of the program that was
	// recorded, or to examine a change: cri.Config, agent.Config, and those of agent.Adjustable. They must
	// not replace the sources, the sink, or the services of the CRI. Optional.
	Adjust []compose.Adjustment

	// Invariants are the names of [Invariants] to evaluate. If there are any, the replayed agent is checked by
	// them and not compared with the recorded one: the replay does not end at a difference, and the runtime
	// answers consistently, whatever the agent does.
	Invariants []string

	// Decisions is true for a recording of another program, such as the kubelet. The runtime
	// answers as for Invariants, and the Decisions of the two programs are compared. Their
	// reads, statuses and probes are not, and the replay does not end at a difference.
	Decisions bool

	// Settle is how long a checked replay goes on after the end of the recording, without faults, until the
	// final state is checked. Zero means 10 minutes.
	Settle time.Duration

	// Logger receives the logs of the agent. If nil, they are discarded.
	Logger *slog.Logger
}

// A Result is the result of a replay.
type Result struct {
	// Until is the time at which the replay ended, since Header.Start: when it was known to differ
	// from the recording, or the end.
	Until time.Duration

	// Divergence is the first difference from the recording; nil if there is none.
	Divergence *Divergence

	// Compared is the number of actions of the replayed agent that were compared. Zero for a checked replay.
	Compared int

	// Unrecorded is the number of reads and random numbers that are not in the recording. They were
	// answered with the last recorded answer and with a constant. For a checked replay, it is the number of sandboxes and
	// containers that are not in the recording.
	Unrecorded int

	// Digest is a hash of all actions, in their order in each pod. It is the same for each replay of a
	// recording with the same program and Options.
	Digest string

	// Decisions are recorded with Options.Decisions; nil without it. Divergence is their first difference.
	Decisions *Decisions

	// Violations are violations of Options.Invariants, in the order of their times; nil if there are none. Trace has what
	// happened in a checked replay.
	Violations []sim.Violation
	Trace      []sim.Entry

	// Timeline has the lifecycles of the replayed pods.
	Timeline timeline.Timeline
}

// Run replays a recording in virtual time, and compares the replayed agent with the recorded one; it ends
// at the first divergence. With Options.Invariants, it checks the agent instead. It returns an error if ctx is done, if
// an invariant is unknown, or if no agent can be constructed. It must not be called in a bubble of testing/synctest.
func Run(ctx context.Context, r *Recording, opts Options) (result Result, err error) {
	if r == nil || len(r.frames) == 0 {
		return Result{}, errors.New("replay: the recording is empty")
	}
	if opts.Until < 0 || opts.Tolerance < 0 || opts.Settle < 0 || opts.Speed < 0 || opts.Speed > 1e6 {
		return Result{}, errors.New("replay: invalid Options: a time or the speed is out of range")
	}
	if err := checkInvariants(opts.Invariants); err != nil {
		return Result{}, fmt.Errorf("replay: %w", err)
	}
	opts.Tolerance, opts.Settle = cmp.Or(opts.Tolerance, 5*time.Second), cmp.Or(opts.Settle, 10*time.Minute)
	dir, err := stateDir(opts.Dir)
	if err != nil {
		return Result{}, fmt.Errorf("replay: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	x := newIndex(r, opts.Until, opts.Pod)
	if err := x.check(); err != nil {
		return Result{}, fmt.Errorf("replay: %w", err)
	}
	ticks := ticker(ctx, opts.Speed)
	defer ticks.stop()
	err = virtualtime.Run(func(inside context.Context) error {
		result, err = run(inside, ctx, r, x, opts, dir, ticks)
		return err
	})
	if err != nil {
		return Result{}, fmt.Errorf("replay: %w", err)
	}
	return result, nil
}

// stateDir creates a directory, in memory if possible: an agent waits for the disk with each
// checkpoint.
func stateDir(in string) (string, error) {
	if in == "" {
		if dir, err := os.MkdirTemp("/dev/shm", "replay"); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp(in, "replay")
}

// run replays a recording in a bubble. outside is the caller's context, of which only Err may be used.
func run(ctx, outside context.Context, r *Recording, x *index, opts Options, dir string, ticks *realTicker) (Result, error) {
	time.Sleep(time.Until(r.Header.Start)) // wall clocks agree with the recording
	w := newWorld(x, time.Now(), opts.Tolerance)
	w.canceled = func() bool { return outside.Err() != nil }
	if opts.Decisions || len(opts.Invariants) > 0 {
		if w.settle = opts.Settle; len(opts.Invariants) == 0 {
			w.settle = 0
		}
		w.model = newModel(w, opts.Invariants)
		w.model.foreign = opts.Decisions
	}
	drawn := new(timeline.Recorder)
	a, err := w.newAgent(opts, r.Header.Node, dir, drawn)
	if err != nil {
		return Result{}, err
	}
	time.Sleep(x.begin)
	w.model.agentStarted()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	go ticks.follow(ctx)
	go w.syncMissing(ctx)
	end, err := w.supervise(ended)
	w.model.settle(err)
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	out := drawn.Timeline()
	cancel()
	if err == nil {
		err = <-ended
	} else if errors.Is(err, errTooManyCalls) {
		<-ended
	}
	if err == nil {
		err = outside.Err()
	}
	if err != nil {
		return Result{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.model != nil {
		result := Result{
			Until: end, Violations: w.model.violations, Trace: w.model.trace, Unrecorded: w.model.created, Digest: w.model.digest(), Timeline: out,
		}
		if opts.Decisions {
			result.Decisions = w.model.compareDecisions()
			if d := result.Decisions; len(d.Differences) > 0 {
				result.Divergence = d.Differences[0]
			}
		}
		return result, nil
	}
	w.outputs.finish(end)
	return Result{
		Until: end, Divergence: w.outputs.first(), Compared: w.outputs.count, Unrecorded: w.unread + w.draws.missing,
		Digest: w.outputs.digest(), Timeline: out,
	}, nil
}

// errTooManyCalls is the error of a replay whose agent retries without a delay.
var errTooManyCalls = errors.New("the replayed agent made many more calls than the recorded one")

// supervise waits until the replay is to end, and returns its time: the end of the recording, or that of a divergence.
func (w *world) supervise(ended <-chan error) (time.Duration, error) {
	until, next := w.x.end+w.settle, w.x.end+w.settle
	for {
		timer := time.NewTimer(next - w.now())
		select {
		case <-timer.C:
			if next == until {
				return until, nil
			}
		case err := <-ended:
			timer.Stop()
			return w.now(), cmp.Or(err, errors.New("the agent stopped"))
		case <-w.diverged:
			timer.Stop()
			if w.canceled() {
				return w.now(), nil
			}
		}
		w.mu.Lock()
		if w.model == nil {
			next = w.outputs.due(w.now())
		}
		diverged, calls := w.outputs.first() != nil, w.calls
		w.mu.Unlock()
		if calls >= w.mostCalls() && !diverged {
			return w.now(), errTooManyCalls
		}
		if diverged {
			return w.now(), nil
		}
		if next == 0 || next >= until {
			next = until
		}
	}
}
