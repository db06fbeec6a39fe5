package prober

import (
	"errors"
	"log/slog"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Config configures a [Manager]. The zero value is valid; every probe is then an error,
// because it has no handler.
type Config struct {
	// Handlers carry out the probes.
	Handlers Handlers

	// Status returns the cached status of a pod, such as pleg.Generator.Get. It is called
	// frequently and from several goroutines, and must not block. With an error it may
	// return the last known status. If nil, the status of the pod passed to Add is used, for
	// agents that do not observe containers themselves.
	Status func(uid types.UID) (*runtime.PodStatus, error)

	// HostIPs returns the node's addresses, the primary one first, which are used to probe
	// pods of the host network. If nil, the pod status is used.
	HostIPs func() []string

	// Changed is called with each new result, in order, on a goroutine of Run. The pod must
	// be synced if Change.NeedsSync. While Changed blocks, probes continue, and only the last
	// of several changes of the same result is delivered. Optional.
	Changed func(Change)

	// Record records an event, such as "Liveness probe failed: …". It must not block. If
	// nil, events are dropped.
	Record func(runtime.Event)

	// Schedule determines when probes run.
	Schedule Schedule

	// Limits bound the number of concurrent probes.
	Limits Limits

	// Path of the checkpoint with the results of readiness and startup probes, which
	// preserves them over a restart of the agent. Its directory must exist. If empty, there
	// is no file, and after a restart the container statuses of the pods apply.
	Path string

	// History is the number of attempts of each probe that [Manager.History] returns. Zero
	// means 5; a negative value disables it.
	History int

	// Logger receives a warning for the first of consecutive attempts of a probe that could
	// not be carried out. If nil, nothing is logged.
	Logger *slog.Logger

	// Hooks are called by the Manager.
	Hooks Hooks
}

// A Schedule determines when probes run.
type Schedule struct {
	// Timing may adjust the timing of a probe, for example by an annotation and with a
	// resolution below a second. It is called by Add and returns t, changed or not. It must
	// not call the Manager. Optional.
	Timing func(pod *v1.Pod, container string, kind Kind, t Timing) Timing

	// Jitter is the fraction of its period by which an attempt is delayed at random, so that
	// probes that started together do not stay synchronized. At most 0.5. Zero means 0.1; a
	// negative value disables it.
	Jitter float64

	// Rand returns numbers in [0,1), for the distribution of first attempts and the jitter.
	// It must not call the Manager, whose lock is held. If nil, math/rand/v2 is used.
	Rand func() float64
}

// Limits bound the number of probes that run. A probe that exceeds them is delayed and does
// not fail.
type Limits struct {
	// Parallel is the maximum number of concurrent probes. Zero means 256.
	Parallel int

	// ExecParallel is the maximum number of concurrent exec probes, which are much more
	// expensive than others. Zero means 16.
	ExecParallel int

	// ExecPerSecond is the maximum average number of exec probes that start in a second.
	// Zero means no limit.
	ExecPerSecond float64
}

// withDefaults returns the Config with defaults, or an error that names an invalid field.
func (c Config) withDefaults() (Config, error) {
	for _, check := range []struct {
		invalid bool
		text    string
	}{
		{c.Limits.Parallel < 0, "Limits.Parallel is negative"},
		{c.Limits.ExecParallel < 0, "Limits.ExecParallel is negative"},
		{c.Limits.ExecPerSecond < 0, "Limits.ExecPerSecond is negative"},
		{c.Schedule.Jitter > 0.5, "Schedule.Jitter is more than half a period"},
	} {
		if check.invalid {
			return c, errors.New("prober: Config." + check.text)
		}
	}
	if c.Limits.Parallel == 0 {
		c.Limits.Parallel = 256
	}
	if c.Limits.ExecParallel == 0 {
		c.Limits.ExecParallel = 16
	}
	if c.Schedule.Jitter == 0 {
		c.Schedule.Jitter = 0.1
	}
	if c.History == 0 {
		c.History = 5
	}
	c.Schedule.Jitter, c.History = max(c.Schedule.Jitter, 0), max(c.History, 0)
	if c.Schedule.Rand == nil {
		c.Schedule.Rand = rand.Float64
	}
	if c.Record == nil {
		c.Record = func(runtime.Event) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
