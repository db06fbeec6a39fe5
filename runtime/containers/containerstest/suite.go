package containerstest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
)

// A Suite describes the backend under test to [TestBackend].
type Suite struct {
	// New returns the backend. Required. It may have other instances.
	New func(t *testing.T) containers.Backend

	// Long is an image or command that runs until it is stopped; Exits one that exits with code 3
	// after a short time. Stubborn ignores a stop from the moment at which Run has returned; if its
	// Image is empty, it is not checked. Key,
	// Record and Pod are set by the suite. Required.
	Long, Exits, Stubborn containers.Container

	// Prints is one that prints two bytes or more to standard output and exits. Without an Image the
	// output of a containers.LogReader is not checked.
	Prints containers.Container

	// Timeout is how long to wait for a state. Zero means 30 s.
	Timeout time.Duration

	// Within runs each step; synctest.Test runs it in virtual time. If nil, it is called directly.
	Within func(t *testing.T, body func(t *testing.T))
}

// TestBackend checks that a backend keeps the contract of [containers.Backend]. Each step is a subtest
// with a name.
func TestBackend(t *testing.T, s Suite) {
	if s.New == nil || s.Long.Image == "" || s.Exits.Image == "" {
		t.Fatal("containerstest: Suite.New, Suite.Long or Suite.Exits is not set")
	}
	if s.Timeout <= 0 {
		s.Timeout = 30 * time.Second
	}
	if s.Within == nil {
		s.Within = func(t *testing.T, body func(t *testing.T)) { body(t) }
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			if step.name == "StopKillsAfterTheGracePeriod" && s.Stubborn.Image == "" {
				t.Skip("not applicable: requires Suite.Stubborn")
			}
			s.Within(t, func(t *testing.T) { step.check(&stepT{T: t, suite: s, backend: s.New(t)}) })
		})
	}
}

type step struct {
	name  string
	check func(t *stepT)
}

type stepT struct {
	*testing.T
	suite   Suite
	backend containers.Backend
}

var steps = []step{
	{"RunStartsAndListReturnsTheRecord", func(t *stepT) {
		id := t.run(t.suite.Long, "runs")
		s := t.until(id, containers.Running)
		if s.Key != keyOf("runs") || s.Record != recordOf("runs") {
			t.Errorf("the list has Key %q and Record %q, not those of Run: a restarted agent does not find the instance", s.Key, s.Record)
		}
		if s.StartedAt.IsZero() {
			t.Error("StartedAt of a running instance is zero")
		}
	}},
	{"RunIsIdempotentByKey", func(t *stepT) {
		first := t.run(t.suite.Long, "twice")
		if second := t.run(t.suite.Long, "twice"); second != first {
			t.Errorf("the second Run with the same Key returned %q, not %q: a lost response starts a container twice", second, first)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { t.run(t.suite.Long, "concurrent") })
		}
		all.Wait()
		if n := t.count("concurrent"); n != 1 {
			t.Errorf("concurrent calls of Run with one Key made %d instances", n)
		}
	}},
	{"RunDoesNotRestartAnExitedInstance", func(t *stepT) {
		id := t.run(t.suite.Exits, "exited")
		before := t.until(id, containers.Exited)
		t.run(t.suite.Exits, "exited")
		if after, _ := t.state(id); after.Phase != containers.Exited || !after.StartedAt.Equal(before.StartedAt) {
			t.Errorf("Run with the Key of an exited instance has started it again: %+v", after)
		}
	}},
	{"AnExitHasACodeAndFixedTimes", func(t *stepT) {
		id := t.run(t.suite.Exits, "code")
		first := t.until(id, containers.Exited)
		if first.ExitCode != 3 {
			t.Errorf("the exit code is %d, not 3", first.ExitCode)
		}
		time.Sleep(20 * time.Millisecond)
		if again, _ := t.state(id); !again.StartedAt.Equal(first.StartedAt) || !again.FinishedAt.Equal(first.FinishedAt) || first.FinishedAt.Before(first.StartedAt) {
			t.Errorf("times differ between two lists, or are reversed: %+v, %+v: they are those of the observation", first, again)
		}
	}},
	{"StopReturnsWhenNothingRuns", func(t *stepT) {
		id := t.run(t.suite.Long, "stopped")
		t.until(id, containers.Running)
		t.must("Stop", t.backend.Stop(t.Context(), id, 10*time.Second))
		if s, ok := t.state(id); !ok || s.Phase != containers.Exited {
			t.Errorf("after Stop the instance is %+v (listed: %v): it must have exited and be listed", s, ok)
		}
		t.must("Stop of an exited instance", t.backend.Stop(t.Context(), id, 0))
	}},
	{"StopKillsAfterTheGracePeriod", func(t *stepT) {
		id := t.run(t.suite.Stubborn, "stubborn")
		t.until(id, containers.Running)
		begun := time.Now()
		t.must("Stop", t.backend.Stop(t.Context(), id, 2*time.Second))
		if took := time.Since(begun); took < time.Second || took > t.suite.Timeout {
			t.Errorf("Stop with a grace period of 2 s took %v: it must wait for the end of the period and no longer, and Suite.Stubborn must ignore a stop as soon as Run has returned", took)
		}
	}},
	{"StopObeysItsContext", func(t *stepT) {
		c := t.suite.Stubborn
		if c.Image == "" {
			t.Skip("not applicable: requires Suite.Stubborn")
		}
		id := t.run(c, "context")
		t.until(id, containers.Running)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		begun := time.Now()
		if err := t.backend.Stop(ctx, id, time.Hour); err == nil {
			t.Error("Stop returned nil, but the instance still runs")
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("Stop returned %v after its context was done", took)
		}
		t.must("a second Stop, with a shorter grace period,", t.backend.Stop(t.Context(), id, 0))
	}},
	{"RemoveRemoves", func(t *stepT) {
		id := t.run(t.suite.Exits, "removed")
		t.until(id, containers.Exited)
		t.must("Remove", t.backend.Remove(t.Context(), id))
		if _, ok := t.state(id); ok {
			t.Error("a removed instance is listed")
		}
		t.must("Remove of a removed instance", t.backend.Remove(t.Context(), id))
		t.must("Stop of a removed instance", t.backend.Stop(t.Context(), id, 0))
	}},
	{"TheOutputOfAnInstanceIsReadOnce", func(t *stepT) {
		reader, ok := compose.As[containers.LogReader](t.backend)
		if !ok || t.suite.Prints.Image == "" {
			t.Skip("not applicable: requires a containers.LogReader and Suite.Prints")
		}
		id := t.run(t.suite.Prints, "prints")
		t.until(id, containers.Exited)
		read := func(skip containers.LogOffset) (stdout, stderr string) {
			var out, errs bytes.Buffer
			t.must("ReadLog", reader.ReadLog(t.Context(), id, skip, runtime.Streams{Stdout: &out, Stderr: &errs}))
			return out.String(), errs.String()
		}
		stdout, stderr := read(containers.LogOffset{})
		if len(stdout) < 2 {
			t.Fatalf("the output is %q: the container must print two bytes or more", stdout)
		}
		rest, restErr := read(containers.LogOffset{Stdout: 1, Stderr: int64(len(stderr))})
		if rest != stdout[1:] || restErr != "" {
			t.Errorf("without the first byte of stdout and all of stderr the output is %q and %q, not %q and nothing: a restarted agent repeats or loses output", rest, restErr, stdout[1:])
		}
	}},
	{"ReadLogObeysItsContext", func(t *stepT) {
		reader, ok := compose.As[containers.LogReader](t.backend)
		if !ok {
			t.Skip("not applicable: requires a containers.LogReader")
		}
		id := t.run(t.suite.Long, "log-context")
		t.until(id, containers.Running)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := reader.ReadLog(ctx, id, containers.LogOffset{}, runtime.Streams{Stdout: io.Discard, Stderr: io.Discard}); err == nil {
			t.Error("ReadLog returned nil while the instance runs: the rest of its output is not read")
		}
	}},
	{"CanceledCallsFail", func(t *stepT) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := t.backend.List(ctx); err == nil {
			t.Error("List returned nil with a context that is done: a partial list would be taken for exits")
		} else if !errors.Is(err, context.Canceled) {
			t.Logf("the error is not context.Canceled: %v", err)
		}
	}},
}

func keyOf(name string) string { return "containerstest-" + name }

// recordOf returns a record of the maximum size.
func recordOf(name string) string {
	record := `{"containerstest":"` + name + `"}`
	return record + strings.Repeat(" ", 4096-len(record))
}

// run runs a container and removes it at the end of the step.
func (t *stepT) run(c containers.Container, name string) string {
	c.Key, c.Record, c.Name = keyOf(name), recordOf(name), "main"
	c.Pod = containers.Pod{UID: "containerstest", Namespace: "default", Name: name}
	id, err := t.backend.Run(t.Context(), c)
	t.must("Run", err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		t.must("Stop", t.backend.Stop(ctx, id, 0))
		t.must("Remove", t.backend.Remove(ctx, id))
	})
	return id
}

func (t *stepT) must(what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s failed: %v", what, err)
	}
}

func (t *stepT) list() []containers.State {
	list, err := t.backend.List(t.Context())
	t.must("List", err)
	return list
}

func (t *stepT) state(id string) (containers.State, bool) {
	list := t.list()
	if i := slices.IndexFunc(list, func(s containers.State) bool { return s.ID == id }); i >= 0 {
		return list[i], true
	}
	return containers.State{}, false
}

func (t *stepT) count(name string) (n int) {
	for _, s := range t.list() {
		if s.Key == keyOf(name) {
			n++
		}
	}
	return n
}

// until waits for a phase.
func (t *stepT) until(id string, phase containers.Phase) containers.State {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		s, ok := t.state(id)
		if ok && s.Phase == phase {
			return s
		}
		if time.Since(begun) > t.suite.Timeout {
			t.Fatalf("the instance is %+v (listed: %v), not in phase %d", s, ok, phase)
		}
	}
}
