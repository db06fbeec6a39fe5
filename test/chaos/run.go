package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// A result is the result of a run.
type result struct {
	options  options
	began    time.Time
	took     time.Duration
	setup    time.Duration // until all pods were running for the first time
	cleared  time.Duration // until nothing remained at the end
	outcomes []outcome
	checker  *checker
	versions []string
	later    map[string][]time.Duration // recovery times of pods that outlast their rounds, by kind
	cut      bool                       // interrupted
}

// An outcome is the result of a round.
type outcome struct {
	round    round
	began    time.Time
	lifted   time.Duration // end of its last fault
	recovery time.Duration // from then until nothing was wrong; -1: not within the bound
	notes    []string
}

// run performs a run. It returns an error if the run cannot continue; violations are in the
// result.
func run(ctx context.Context, o options, say func(string, ...any)) (res result, err error) {
	res = result{options: o, began: time.Now(), checker: newChecker()}
	res.checker.onViolation = func(v violation) { say("VIOLATION of %s", v) }
	err = lab.Program(ctx, printWriter(say), func(t testing.TB) error {
		r := &runner{world: newWorld(t, o, res.checker, say), options: o, result: &res, operator: newOperator(), say: say}
		return r.all()
	})
	res.took = time.Since(res.began)
	if ctx.Err() != nil {
		res.cut, err = true, withoutCanceled(err)
	}
	return res, err
}

// A printWriter is an io.Writer that prints each write as one line.
type printWriter func(string, ...any)

func (print printWriter) Write(p []byte) (int, error) {
	print("%s", strings.TrimSpace(string(p)))
	return len(p), nil
}

func withoutCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// A runner drives the rounds of one run.
type runner struct {
	*world
	options  options
	result   *result
	operator *operator
	say      func(string, ...any)
	desired  []string // desired pods

	mu  sync.Mutex
	now string // the current action, for progress lines
}

// all performs a run: all pods, rounds until the time is over, no pods.
func (r *runner) all() error {
	ctx, cancel := context.WithCancel(r.quietly(r.ctx))
	var watchers sync.WaitGroup
	defer func() { cancel(); watchers.Wait(); r.healing.Wait(); r.result.later = r.later }()
	for _, f := range []func(context.Context){r.watchAPI, r.observeLoop, r.printProgress} {
		watchers.Go(func() { f(ctx) })
	}
	watchers.Go(func() { r.operator.work(ctx, r.world) })

	r.doing("waiting for the node")
	if err := r.prepare(ctx); err != nil {
		return fmt.Errorf("the node does not become ready: %w; log of the agent:\n%s", err, labenv.Tail(r.agentLog(), 10))
	}
	r.result.versions = r.versionsOf(ctx)
	d := r.options.drawer()
	r.say("%d pods", r.options.pods)
	first, err := r.play(ctx, d.first())
	r.result.setup = first.lifted + first.recovery
	if err != nil || first.recovery < 0 {
		return err
	}
	r.say("all pods run after %v; faults begin", r.result.setup.Round(100*time.Millisecond))

	for began := time.Now(); ; {
		if r.options.once && d.n == len(r.options.kinds) || !r.options.once && time.Since(began) > r.options.duration {
			break
		}
		out, err := r.play(ctx, d.next())
		if err != nil {
			return err
		}
		r.result.outcomes = append(r.result.outcomes, out)
		r.say("%s", out)
		if out.recovery < 0 {
			return nil // following rounds would be meaningless
		}
	}
	return r.clear(ctx)
}

// play performs the steps of a round at their times and waits for the recovery.
func (r *runner) play(ctx context.Context, round round) (outcome, error) {
	out := outcome{round: round, began: time.Now()}
	r.doing("round %d: %s", round.n, strings.Join(round.faults(), " and "))
	r.checker.during(fmt.Sprintf("round %d, %s", round.n, faultsInWords(round)))
	r.world.noted, r.world.doomed = nil, nil
	type act struct {
		at time.Duration
		do func() error
	}
	var acts []act
	for _, s := range round.steps {
		acts = append(acts, act{s.at, func() error {
			if s.fault == "" {
				r.operator.do(s)
				r.setDesired(s)
				return nil
			}
			if s.target != "" {
				r.checker.touch(s.target)
			}
			end, err := kindNamed(s.fault).begin(r.world, s)
			if err != nil {
				out.notes = append(out.notes, fmt.Sprintf("%s: %v", s.fault, err))
			}
			if end != nil {
				acts = append(acts, act{max(time.Since(out.began)+s.length, s.at), end})
			}
			return nil
		}})
	}
	for len(acts) > 0 {
		slices.SortStableFunc(acts, func(a, b act) int { return cmp.Compare(a.at, b.at) })
		next := acts[0]
		// Faults are ended on interrupt as well.
		if ctx.Err() == nil {
			select {
			case <-time.After(next.at - time.Since(out.began)):
			case <-ctx.Done():
			}
		}
		acts = acts[1:]
		if err := next.do(); err != nil {
			return out, err
		}
	}
	out.lifted = time.Since(out.began)
	out.notes = append(out.notes, r.world.noted...)
	return out, r.recover(ctx, &out)
}

// setDesired updates the list of desired pods.
func (r *runner) setDesired(s step) {
	if s.make != "" {
		r.desired = append(r.desired, s.make)
	}
	r.desired = slices.DeleteFunc(r.desired, func(name string) bool { return name == s.delete })
}

// recover waits until nothing is wrong, at most for the bound.
func (r *runner) recover(ctx context.Context, out *outcome) error {
	since := time.Now()
	r.doing("round %d: %s is over, waiting for all to be well", out.round.n, out.round.kind())
	if err := r.operator.empty(ctx); err != nil {
		return err
	}
	var wrong []string
	err := labenv.Until(ctx, "wait for the recovery", r.options.bound, func() error {
		if wrong = r.differences(ctx, r.desired); len(wrong) > 0 {
			r.doing("round %d: %s is over; %d things are not well yet: %s", out.round.n, out.round.kind(), len(wrong), cut(wrong[0], 100))
			return errors.New(wrong[0])
		}
		return nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	out.recovery = time.Since(since)
	var left, unlike []string
	for _, line := range wrong {
		if strings.HasPrefix(line, "of pod") || strings.HasPrefix(line, "shim") {
			left = append(left, line)
		} else {
			unlike = append(unlike, line)
		}
	}
	if err != nil {
		out.recovery = -1
	}
	about := fmt.Sprintf("round %d", out.round.n)
	r.checker.check(converges, len(unlike) == 0, about, "not within %v: %s", r.options.bound, strings.Join(unlike, "; "))
	r.checker.check(nothingLeft, len(left) == 0, about, "not within %v: %s", r.options.bound, strings.Join(left, "; "))
	r.readLogs(r.desired)
	r.checker.settled()
	return nil
}

// clear deletes all pods and checks that nothing of them remains, including logs.
func (r *runner) clear(ctx context.Context) error {
	r.doing("waiting for what takes longer")
	r.healing.Wait()
	r.checker.settled()
	r.doing("deleting all pods")
	r.checker.during("all pods are deleted")
	begun := time.Now()
	for _, name := range slices.Clone(r.desired) {
		s := step{delete: name}
		r.operator.do(s)
		r.setDesired(s)
	}
	out := outcome{began: begun}
	if err := r.recover(ctx, &out); err != nil {
		return err
	}
	var logs []string
	err := labenv.Until(ctx, "wait for the recovery", r.options.bound, func() error {
		if logs = r.remainingLogs(); len(logs) > 0 {
			return errors.New(logs[0])
		}
		return nil
	})
	r.checker.check(nothingLeft, err == nil, "all pods", "not within %v: %s", r.options.bound, strings.Join(logs, "; "))
	r.result.cleared = time.Since(begun)
	return ctx.Err()
}

// doing sets the current action.
func (r *runner) doing(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = fmt.Sprintf(format, args...)
}

// cut truncates s.
func cut(s string, n int) string {
	if len(s) > n {
		return s[:n-3] + "..."
	}
	return s
}

// printProgress prints a line every few seconds until ctx is done.
func (r *runner) printProgress(ctx context.Context) {
	for tick := time.NewTicker(5 * time.Second); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		r.mu.Lock()
		now := r.now
		r.mu.Unlock()
		r.say("  %s; %s; %d checks, %d violations", now, r.checker.count(), r.checker.total(), len(r.checker.broken()))
	}
}

// String returns the outcome in one line.
func (o outcome) String() string {
	what := "well again after " + o.recovery.Round(10*time.Millisecond).String()
	if o.recovery < 0 {
		what = "NOT WELL AGAIN"
	}
	line := fmt.Sprintf("round %d: %s: %s", o.round.n, strings.Join(o.round.faults(), " and "), what)
	if len(o.notes) > 0 {
		line += " (" + strings.Join(o.notes, "; ") + ")"
	}
	return line
}
