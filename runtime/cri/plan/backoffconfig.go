package plan

import (
	"fmt"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// BackoffConfig says how long a container that exits again and again is kept
// waiting.
type BackoffConfig struct {
	// Initial is the first delay. The first restart is immediate; the second
	// waits for Initial, each further one Factor times as long as the one
	// before. Zero: 10 s.
	Initial time.Duration

	// Max is the longest delay. Zero: 300 s. If below Initial, Initial is
	// lowered to it (rt-93). Long delays spare the node; short ones bring a
	// container back sooner after what it needs has come back.
	Max time.Duration

	// Reset is the run after which a container counts as healthy, so that the
	// sequence begins again when it exits. Zero: 600 s.
	Reset time.Duration

	// Factor by which delays grow, at least 1. Zero: 2.
	Factor float64

	// SpareSuccess takes exits with code 0 for no crash: the container is
	// started again at once, and the sequence begins again. By default they
	// are delayed like any other (rt-95).
	SpareSuccess bool

	// Forgetful does not derive what the table does not know: after a restart
	// of the agent all sequences begin again, as the kubelet's do (rt-96,
	// lq-29).
	Forgetful bool

	// For returns what holds for one container of a pod in place of this: nil
	// is nothing else, and what is zero or nonsense (negative, a factor below
	// 1) in the answer is as here; its For and its Forgetful are not looked
	// at. It is called for each container with an exited instance in each plan,
	// from many goroutines: it must be quick and always say the same. Nil: all
	// are alike.
	For func(pod *v1.Pod, c *v1.Container) *BackoffConfig
}

// check returns an error that names what makes no sense.
func (p *BackoffConfig) check() error {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"Initial", p.Initial}, {"Max", p.Max}, {"Reset", p.Reset}} {
		if f.value < 0 {
			return fmt.Errorf("plan: BackoffConfig.%s is negative: %v", f.name, f.value)
		}
	}
	if p.Factor != 0 && !(p.Factor >= 1) {
		return fmt.Errorf("plan: BackoffConfig.Factor is below 1: %v", p.Factor)
	}
	return nil
}

// fill takes what is zero or nonsense from d, and lowers Initial to Max.
func (p *BackoffConfig) fill(d *BackoffConfig) {
	for _, f := range []struct {
		value   *time.Duration
		instead time.Duration
	}{{&p.Initial, d.Initial}, {&p.Max, d.Max}, {&p.Reset, d.Reset}} {
		if *f.value <= 0 {
			*f.value = f.instead
		}
	}
	if !(p.Factor >= 1) {
		p.Factor = d.Factor
	}
	p.Initial = min(p.Initial, p.Max)
}

// policy returns what holds for the container.
func (b *Backoff) policy(pod *v1.Pod, c *v1.Container) *BackoffConfig {
	if b.cfg.For == nil {
		return &b.cfg
	}
	own := b.cfg.For(pod, c)
	if own == nil {
		return &b.cfg
	}
	p := *own
	p.fill(&b.cfg)
	p.Forgetful = b.cfg.Forgetful
	return &p
}

// spares reports whether the exit of inst is not taken for a crash.
func (p *BackoffConfig) spares(inst *runtime.ContainerStatus) bool {
	return p.SpareSuccess && inst.ExitCode == 0
}

// after returns the delay that comes after d.
func (p *BackoffConfig) after(d time.Duration) time.Duration {
	if d == 0 {
		return p.Initial
	}
	return p.cap(float64(d) * p.Factor)
}

// nth returns the delay that comes after n restarts.
func (p *BackoffConfig) nth(n int32) time.Duration {
	if n <= 0 {
		return 0
	}
	return p.cap(float64(p.Initial) * math.Pow(p.Factor, float64(n-1)))
}

// cap returns d as a duration, Max at most.
func (p *BackoffConfig) cap(d float64) time.Duration {
	if d < float64(p.Max) {
		return time.Duration(d)
	}
	return p.Max
}

// derive works out what the table would say had it seen every start: as many
// delays as there were restarts, since the last instance still held that ran
// long enough to reset the sequence, was spared or forgiven, or was made from
// another spec. Restarts that nothing is left of are taken for crashes, so the
// result errs on the long side.
func (p *BackoffConfig) derive(c *v1.Container, exited []*runtime.ContainerStatus, forgiven time.Time) crashes {
	last := exited[0]
	hash := Hash(c)
	restarts := last.RestartCount
	for i, inst := range exited {
		since := last.RestartCount - inst.RestartCount
		if i > 0 && p.spares(inst) {
			restarts = since - 1
			break
		}
		if inst.Hash != 0 && inst.Hash != hash || i > 0 && (inst.FinishedAt.Sub(startOf(inst)) > p.Reset || before(inst, forgiven)) {
			restarts = since
			break
		}
	}
	return crashes{started: startOf(last), delay: p.nth(restarts)}
}
