package plan

import (
	"fmt"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// BackoffConfig configures a [Backoff].
type BackoffConfig struct {
	// Initial is the first delay. The first restart is not delayed; the second is
	// delayed by Initial, and each further one Factor times as long as the one before.
	// Zero means 10 s.
	Initial time.Duration

	// Max is the maximum delay. Zero means 300 s. An Initial above Max is lowered to it
	// (rule rt-93). With a short delay a container recovers sooner once its dependencies
	// are available; a long one reduces the load on the node.
	Max time.Duration

	// Reset is the duration of a run after which the sequence begins again. Zero means
	// 600 s.
	Reset time.Duration

	// Factor multiplies successive delays. It must be at least 1; zero means 2.
	Factor float64

	// ExemptSuccess exempts exits with code 0: the container is restarted without delay,
	// and the sequence begins again. By default they are delayed like all others (rule
	// rt-95).
	ExemptSuccess bool

	// Forgetful disables deriving the delays of containers without an entry: after a
	// restart of the agent all sequences begin again, as in the kubelet (rule rt-96).
	Forgetful bool

	// ForContainer returns the configuration of one container; nil means this one.
	// Fields that are zero or invalid (negative, a factor below 1) are taken from this
	// one; ForContainer and Forgetful are ignored. It is called concurrently, for each
	// container with an exited instance in each plan: it must be fast and deterministic.
	// If nil, all containers have this configuration.
	ForContainer func(pod *v1.Pod, c *v1.Container) *BackoffConfig
}

// check returns an error for the first invalid field.
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

// fill takes zero and invalid fields from d, and lowers Initial to Max.
func (p *BackoffConfig) fill(d *BackoffConfig) {
	for _, f := range []struct {
		value     *time.Duration
		byDefault time.Duration
	}{{&p.Initial, d.Initial}, {&p.Max, d.Max}, {&p.Reset, d.Reset}} {
		if *f.value <= 0 {
			*f.value = f.byDefault
		}
	}
	if !(p.Factor >= 1) {
		p.Factor = d.Factor
	}
	p.Initial = min(p.Initial, p.Max)
}

// policy returns the configuration for the container.
func (b *Backoff) policy(pod *v1.Pod, c *v1.Container) *BackoffConfig {
	if b.cfg.ForContainer == nil {
		return &b.cfg
	}
	own := b.cfg.ForContainer(pod, c)
	if own == nil {
		return &b.cfg
	}
	p := *own
	p.fill(&b.cfg)
	p.Forgetful = b.cfg.Forgetful
	return &p
}

// isExempt reports whether the exit of inst is not followed by a delay.
func (p *BackoffConfig) isExempt(inst *runtime.ContainerStatus) bool {
	return p.ExemptSuccess && inst.ExitCode == 0
}

// after returns the delay that follows d.
func (p *BackoffConfig) after(d time.Duration) time.Duration {
	if d == 0 {
		return p.Initial
	}
	return p.cap(float64(d) * p.Factor)
}

// nth returns the delay after n restarts.
func (p *BackoffConfig) nth(n int32) time.Duration {
	if n <= 0 {
		return 0
	}
	return p.cap(float64(p.Initial) * math.Pow(p.Factor, float64(n-1)))
}

// cap returns d, or Max if it is shorter.
func (p *BackoffConfig) cap(d float64) time.Duration {
	if d < float64(p.Max) {
		return time.Duration(d)
	}
	return p.Max
}

// derive computes the entry from the exited instances: one delay for each restart since the
// last instance that ran for Reset, was exempt, was started before resetAt, or was created
// from another spec. Restarts whose instances were removed count as backoffState, so the delay
// may be too long but not too short.
func (p *BackoffConfig) derive(c *v1.Container, exited []*runtime.ContainerStatus, resetAt time.Time) backoffState {
	last := exited[0]
	hash := Hash(c)
	restarts := last.RestartCount
	for i, inst := range exited {
		since := last.RestartCount - inst.RestartCount
		if i > 0 && p.isExempt(inst) {
			restarts = since - 1
			break
		}
		if inst.Hash != 0 && inst.Hash != hash || i > 0 && (inst.FinishedAt.Sub(startOf(inst)) > p.Reset || startedBefore(inst, resetAt)) {
			restarts = since
			break
		}
	}
	return backoffState{started: startOf(last), delay: p.nth(restarts)}
}
