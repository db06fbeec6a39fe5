package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/sim/record"
)

// ShrinkOptions configure [Shrink]. The zero value shrinks to the first divergence.
type ShrinkOptions struct {
	// Invariant is the name of the invariant that a smaller recording must violate, too, in the same way: with the same
	// message but for IDs and numbers. Empty means that its first divergence must be of the same kind: of the same pod,
	// output and reason.
	Invariant string

	// Fails is the criterion instead: whether a replay fails. It must be deterministic. Replay.Invariants
	// determines whether replays are checked or compared.
	Fails func(Result) bool

	// Replay are the options of the replays. Its Invariants are set if Invariant is.
	Replay Options

	// Replays is the largest number of replays. Zero means 2000.
	Replays int

	// Progress is called at the start of each step, and after each replay that failed as
	// required. It must not block. Optional.
	Progress func(ShrinkProgress)
}

// A ShrinkProgress is the state of [Shrink].
type ShrinkProgress struct {
	Step    string // "pods", "end", "frames", "idle time", "fields", "names"
	Replays int    // so far
	Frames  int    // of the smallest recording so far
	Length  time.Duration
}

// ErrNotReproduced reports that a recording that is to be shrunk does not fail as required.
var ErrNotReproduced = errors.New("the replay does not fail")

// Shrink returns a smaller recording whose replay fails as well. It drops pods, then the time
// after the failure, then frames, idle time, and fields, as long as the criterion of opts fails.
// The order of its replays is the same for each call, and so is the result if their results are.
//
// If ctx is done, or the replays are used up, it returns the smallest recording so far;
// then the error is nil for the latter, and ctx's for the former. errors.Is(err,
// ErrNotReproduced) is true, and the recording nil, if r itself does not fail.
func Shrink(ctx context.Context, r *Recording, opts ShrinkOptions) (*Recording, error) {
	if r == nil || len(r.frames) == 0 {
		return nil, errors.New("replay: the recording is empty")
	}
	if opts.Replays < 0 {
		return nil, errors.New("replay: ShrinkOptions.Replays is negative")
	}
	if opts.Invariant == "" && opts.Fails == nil && len(opts.Replay.Invariants) > 0 {
		return nil, errors.New("replay: ShrinkOptions.Replay has Invariants, and none is the criterion: set Invariant or Fails")
	}
	opts.Replays = cmp.Or(opts.Replays, 2000)
	s := &shrinker{ctx: ctx, opts: opts, fails: opts.Fails}
	if opts.Invariant != "" {
		s.opts.Replay.Invariants = []string{opts.Invariant}
	}
	if s.fails == nil {
		first, err := Run(ctx, r, s.opts.Replay)
		s.replays++
		if err != nil {
			return nil, err
		}
		s.fails = criterion(opts.Invariant, first)
	}
	s.opts.Replay.Speed = 0
	frames := single(r.frames)
	s.best = frames
	if !s.try(frames) {
		if err := cmp.Or(ctx.Err(), s.err); err != nil {
			return nil, fmt.Errorf("replay: shrink: %w", err)
		}
		return nil, fmt.Errorf("replay: %w as required: %s", ErrNotReproduced, cmp.Or(opts.Invariant, "no divergence of this kind"))
	}
	s.shrink()
	out, err := newRecording(s.best)
	return out, cmp.Or(ctx.Err(), err)
}

// criterion returns a function that reports whether a replay fails as the first one.
func criterion(invariant string, first Result) func(Result) bool {
	if invariant != "" {
		kinds := map[string]bool{}
		for _, v := range first.Violations {
			kinds[violationKind(v)] = true
		}
		return func(r Result) bool {
			return slices.ContainsFunc(r.Violations, func(v sim.Violation) bool { return v.Invariant == invariant && kinds[violationKind(v)] })
		}
	}
	want := divergenceKind(first.Divergence)
	return func(r Result) bool { return want != "" && divergenceKind(r.Divergence) == want }
}

// violationKind returns what a violation has in common with others of its invariant that
// have the same cause: its message without IDs, numbers and names of images.
func violationKind(v sim.Violation) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(v.Message), func(word string) bool { return strings.ContainsAny(word, "0123456789:/") }), " ")
}

// variable is what differs between equal actions: values, times and IDs.
var variable = regexp.MustCompile(`[{"].*|at [0-9.]+s|[0-9][0-9a-z.]*`)

// divergenceKind returns what a divergence has in common with others that have the same cause; empty for nil.
func divergenceKind(d *Divergence) string {
	if d == nil {
		return ""
	}
	general := func(text string) string { return strings.TrimSpace(variable.ReplaceAllString(text, "")) }
	return strings.Join([]string{string(d.UID), d.What, general(d.Recorded), general(d.Replayed), general(d.Reason)}, "|")
}

// A shrinker is the state of one Shrink.
type shrinker struct {
	ctx     context.Context
	opts    ShrinkOptions
	fails   func(Result) bool
	best    []record.Frame // the smallest frames that have failed; the first is a header, the last an end
	replays int
	step    string
	err     error // of the last replay
}

// done reports whether no more replays are allowed.
func (s *shrinker) done() bool { return s.replays >= s.opts.Replays || s.ctx.Err() != nil }

// try replays frames, which become the best ones if that fails.
func (s *shrinker) try(frames []record.Frame) bool {
	if s.done() {
		return false
	}
	r, err := newRecording(frames)
	if err != nil {
		return false
	}
	s.replays++
	result, err := Run(s.ctx, r, s.opts.Replay)
	if s.err = err; err != nil || !s.fails(result) {
		return false
	}
	s.best = frames
	s.progress()
	return true
}

func (s *shrinker) progress() {
	if s.opts.Progress != nil {
		s.opts.Progress(ShrinkProgress{Step: s.step, Replays: s.replays, Frames: len(s.best), Length: s.best[len(s.best)-1].At})
	}
}

// shrink makes the steps, the later ones as often as they have an effect on earlier ones.
func (s *shrinker) shrink() {
	run := func(name string, step func()) {
		if !s.done() {
			s.step = name
			s.progress()
			step()
		}
	}
	run("pods", s.dropPods)
	run("end", s.cutEnd)
	run("frames", s.dropKinds)
	run("frames", s.dropFrames)
	run("idle time", s.cutIdle)
	run("fields", s.dropFields)
	for range 3 {
		n, length := len(s.best), s.best[len(s.best)-1].At
		run("frames", s.dropFrames)
		run("end", s.cutEnd)
		run("idle time", s.cutIdle)
		if len(s.best) == n && s.best[len(s.best)-1].At == length {
			break
		}
	}
	run("names", s.simplifyNames)
}

// end returns the frame of the end of frames.
func end(at time.Duration) record.Frame { return record.Frame{At: at, End: &record.End{}} }

// cutEnd drops the last frames, as many as possible.
func (s *shrinker) cutEnd() {
	low, high := 1, len(s.best)-1 // frames without the end
	for low < high && !s.done() {
		n := (low + high) / 2
		if s.try(append(slices.Clone(s.best[:n]), end(s.best[n-1].At))) {
			high = n
		} else {
			low = n + 1
		}
	}
	// The idle time before the end.
	for _, at := range []time.Duration{lastAt(s.best), lastAt(s.best) + time.Second, lastAt(s.best) + time.Minute} {
		if last := len(s.best) - 1; at < s.best[last].At && s.try(append(slices.Clone(s.best[:last]), end(at))) {
			return
		}
	}
}

// lastAt returns the time of the last frame before the end.
func lastAt(frames []record.Frame) (at time.Duration) {
	for _, f := range frames[:len(frames)-1] {
		at = max(at, f.At)
	}
	return at
}

// dropKinds drops all frames of a kind.
func (s *shrinker) dropKinds() {
	for _, kind := range []func(record.Frame) bool{
		func(f record.Frame) bool { return f.Call != nil && !changes[f.Call.Method] && f.Call.Error == nil },
		func(f record.Frame) bool {
			return f.Call != nil && !changes[f.Call.Method] && f.Call.Method != "ContainerStatus"
		},
		func(f record.Frame) bool { return f.Call != nil && changes[f.Call.Method] },
		func(f record.Frame) bool { return f.Status != nil },
		func(f record.Frame) bool { return f.Draw != nil },
		func(f record.Frame) bool { return f.Probe != nil },
		func(f record.Frame) bool { return f.Operation != nil },
		func(f record.Frame) bool { return f.Event != nil },
		func(f record.Frame) bool { return f.Agent != nil },
	} {
		if slices.ContainsFunc(s.best, kind) {
			s.try(slices.DeleteFunc(slices.Clone(s.best), kind))
		}
	}
}

// dropFrames drops frames, as many at a time as possible, until no single one can be dropped.
func (s *shrinker) dropFrames() {
	for size := max(len(s.best)/2, 1); !s.done(); size = max(size/2, 1) {
		dropped := false
		for to := len(s.best) - 1; to > 1 && !s.done(); to -= size {
			to = min(to, len(s.best)-1)
			if from := max(to-size, 1); from < to && s.try(slices.Delete(slices.Clone(s.best), from, to)) {
				dropped = true
			}
		}
		if size == 1 && !dropped {
			return
		}
	}
}
