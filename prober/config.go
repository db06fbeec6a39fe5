package prober

import (
	"errors"
	"log/slog"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Config says what a [Manager] works with. The zero value is good for trying
// it: nothing is probed by a nil handler.
type Config struct {
	// Handlers carry out the probes.
	Handlers Handlers

	// Status returns what is known of a pod: pleg.Generator.Get. It is called
	// often and from several goroutines, and does not block; with an error it
	// returns what was known before. Nil: the status in the pod that Add is
	// given counts, for agents that know their containers by that.
	Status func(uid types.UID) (*runtime.PodStatus, error)

	// HostIPs returns the node's addresses, the primary one first, at which
	// pods of the host network are probed. Nil: what their status says.
	HostIPs func() []string

	// Changed is told of each new result, in order, on a goroutine of Run:
	// the agent syncs the pod if Change.Matters. While it blocks, probes go
	// on, and of several changes of one result it gets the last. Nil: nobody.
	Changed func(Change)

	// Record takes the events that kubectl describe shows: "Liveness probe
	// failed: …". It does not block. Nil: nobody.
	Record func(runtime.Event)

	// Timing may change when a probe runs, beyond what whole seconds can say,
	// from an annotation, say. It is called by Add and returns t, changed or
	// not; it must not call the Manager. Nil: as the API says.
	Timing func(pod *v1.Pod, container string, kind Kind, t Timing) Timing

	// File keeps the results of readiness and startup probes, so that a
	// restart of the agent changes nothing for containers (F-01). Its
	// directory has to exist. "": there is no file, and what the pods' statuses
	// say of their containers counts after a restart.
	File string

	// Parallel is how many probes run at a time at most. Zero: 256. A probe
	// that has to wait is late, and does not fail.
	Parallel int

	// Exec bounds the probes that run a command, which cost a node much more
	// than others (F-05).
	Exec Budget

	// Jitter is by which part of its period a run is moved at random, so that
	// probes that began together don't run together for ever (F-03). Zero: 0.1;
	// negative: none.
	Jitter float64

	// History is how many runs of each probe to remember (F-08). Zero: 5;
	// negative: none.
	History int

	// Rand returns numbers in [0,1), for spread and jitter. It must not call the
	// Manager, whose lock is held. Nil: math/rand.
	Rand func() float64

	// Logger gets a warning for the first of consecutive runs of a probe that
	// could not be carried out. Nil discards.
	Logger *slog.Logger

	// Hooks observe; see there.
	Hooks Hooks
}

// A Budget is what a type of probe may take of the node. Probes over it are
// put off until there is room (F-05).
type Budget struct {
	// Parallel is how many run at a time at most. Zero: 16.
	Parallel int

	// PerSecond is how many are begun in a second at most, on average. Zero:
	// no limit.
	PerSecond float64
}

// fill puts the defaults in, or says what is wrong.
func (c Config) fill() (Config, error) {
	for _, each := range []struct {
		bad  bool
		text string
	}{
		{c.Parallel < 0, "Parallel is negative"},
		{c.Exec.Parallel < 0, "Exec.Parallel is negative"},
		{c.Exec.PerSecond < 0, "Exec.PerSecond is negative"},
		{c.Jitter > 0.5, "Jitter is more than half a period"},
	} {
		if each.bad {
			return c, errors.New("prober: Config." + each.text)
		}
	}
	if c.Parallel == 0 {
		c.Parallel = 256
	}
	if c.Exec.Parallel == 0 {
		c.Exec.Parallel = 16
	}
	if c.Jitter == 0 {
		c.Jitter = 0.1
	}
	if c.History == 0 {
		c.History = 5
	}
	c.Jitter, c.History = max(c.Jitter, 0), max(c.History, 0)
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if c.Record == nil {
		c.Record = func(runtime.Event) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
