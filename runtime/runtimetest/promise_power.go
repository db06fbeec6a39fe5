package runtimetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// powerPromises are those of the optional powers. A runtime without one skips
// its promises.
var powerPromises = []promise{
	{
		name:  "CheckIsHealthy",
		says:  "Check of a runtime that can start containers returns no error, and a Health whose Runtime is nil.",
		needs: needs[runtime.Checker]("Checker"),
		check: func(t *trial) {
			h, err := t.rt.(runtime.Checker).Check(t.Context())
			if err != nil || h.Runtime != nil {
				t.Errorf("Check says %+v, %v", h, err)
			}
		},
	},
	{
		name:  "WatchHints",
		says:  "Watch calls changed with the UID of a pod that may have changed, one call at a time, until ctx ends, and then returns nil.",
		needs: needs[runtime.Watcher]("Watcher"),
		check: func(t *trial) {
			ctx, cancel := context.WithCancel(t.Context())
			hints := make(chan types.UID, 1024)
			result := make(chan error, 1)
			var watching sync.WaitGroup
			defer watching.Wait()
			defer cancel()
			watching.Go(func() {
				result <- t.rt.(runtime.Watcher).Watch(ctx, func(uid types.UID) {
					select {
					case hints <- uid:
					default: // changed must not block
					}
				})
			})
			hinted := func(uid types.UID, patience time.Duration) bool {
				deadline := time.After(patience)
				for {
					select {
					case got := <-hints:
						if got == uid {
							return true
						}
					case err := <-result:
						t.Skipf("Watch cannot go on (its caller would list): %v", err)
					case <-deadline:
						return false
					}
				}
			}
			// A watch takes a moment to begin, and nobody says when: what
			// changed before may go without a hint.
			t.pause(10 * t.suite.Poll)
			var pod *v1.Pod
			for try := 1; pod == nil || !hinted(pod.UID, t.suite.Patience/5); try++ {
				if try > 5 {
					t.Error("no hint after the start of a pod")
					return
				}
				pod = t.pod(v1.RestartPolicyNever, named("long", t.suite.Long))
				t.sync(pod)
			}
			t.pause(10 * t.suite.Poll) // for what else the start hints at
			for len(hints) > 0 {
				<-hints
			}
			t.kill(pod, nil)
			if !hinted(pod.UID, t.suite.Patience) {
				t.Error("no hint after the end of a pod")
				return
			}
			cancel()
			select {
			case err := <-result:
				if err != nil {
					t.Errorf("at the end of its context Watch returned %v", err)
				}
			case <-time.After(t.suite.Patience):
				t.Error("Watch goes on after the end of its context")
			}
		},
	},
	{
		name:  "ExecTellsOutputAndCode",
		says:  "Exec runs a command in the container to its end; one that ran and failed is no error, its exit code is in the result.",
		needs: needsExec,
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Long))
			id := t.container(t.up(pod), "long").ID
			for _, code := range []int32{0, 3} {
				res, err := t.exec(t.Context(), id, t.suite.Print("hello", code), t.suite.Patience)
				if err != nil || res.ExitCode != code || string(res.Stdout) != "hello" {
					t.Errorf("Exec of a command that prints hello and exits with %d: %+v, %v", code, res, err)
				}
			}
			if res, err := t.exec(t.Context(), id+"-not", t.suite.Print("hello", 0), t.suite.Patience); err == nil {
				t.Errorf("Exec in a container that does not exist: %+v, no error", res)
			}
			t.kill(pod, nil)
			if res, err := t.exec(t.Context(), id, t.suite.Print("hello", 0), t.suite.Patience); err == nil {
				t.Errorf("Exec in a container that has exited: %+v, no error", res)
			}
		},
	},
	{
		name:  "ExecEndsInTime",
		says:  "When its timeout or its context ends a command, Exec returns an error.",
		needs: needsExec,
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Long))
			id := t.container(t.up(pod), "long").ID
			begun := time.Now()
			if res, err := t.exec(t.Context(), id, t.suite.Block, time.Second); err == nil {
				t.Errorf("Exec beyond its timeout: %+v, no error", res)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if res, err := t.exec(ctx, id, t.suite.Block, 0); err == nil {
				t.Errorf("Exec beyond its context: %+v, no error", res)
			}
			if took := time.Since(begun); took > t.suite.Patience {
				t.Errorf("two commands of a second and less took %v", took)
			}
		},
	},
	{
		name:  "StreamExecStreams",
		says:  "StreamExec runs a command in the container to its end, writes what it prints to the caller's Stdout, and returns its exit code.",
		needs: needsStreamExec,
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Long))
			id := t.container(t.up(pod), "long").ID
			rt := t.rt.(runtime.StreamExecer)
			for _, want := range []int32{0, 3} {
				var out bytes.Buffer
				code, err := rt.StreamExec(t.Context(), id, t.suite.Print("hello", want), runtime.Streams{Stdout: &out})
				if errors.Is(err, runtime.ErrUnsupported) {
					t.Skipf("StreamExec is not supported (its caller would do without): %v", err)
				}
				if err != nil || code != want || out.String() != "hello" {
					t.Errorf("StreamExec of a command that prints hello and exits with %d: %q, %d, %v", want, out.String(), code, err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			begun := time.Now()
			if code, err := rt.StreamExec(ctx, id, t.suite.Block, runtime.Streams{}); err == nil {
				t.Errorf("StreamExec beyond its context: %d, no error", code)
			}
			if took := time.Since(begun); took > t.suite.Patience {
				t.Errorf("a command whose context ended after 0.3 s took %v", took)
			}
			if code, err := rt.StreamExec(t.Context(), id+"-not", t.suite.Print("hello", 0), runtime.Streams{}); err == nil {
				t.Errorf("StreamExec in a container that does not exist: %d, no error", code)
			}
		},
	},
	{
		name:  "GarbageKeepsTheNewest",
		says:  "CollectGarbage keeps MaxPerContainer dead instances of each container, the newest ones, and whatever runs; MinAge spares the young.",
		needs: needs[runtime.GarbageCollector]("GarbageCollector"),
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Exit(1)), named("long", t.suite.Long))
			s := t.syncUntil(pod, "flappy has exited twice", func(s *runtime.PodStatus) bool {
				return len(instances(s, "flappy")) > 1 && exited("flappy")(s)
			})
			all := instances(s, "flappy")
			t.collect(runtime.GCPolicy{MinAge: time.Hour})
			if young := t.look(pod.UID); len(instances(young, "flappy")) != len(all) {
				t.Errorf("instances younger than MinAge were removed; the pod was\n%s\nand is\n%s", describe(s), describe(young))
			}
			t.collect(runtime.GCPolicy{MaxPerContainer: 1})
			s = t.look(pod.UID)
			if left := instances(s, "flappy"); len(left) != 1 || left[0].ID != all[0].ID {
				t.Errorf("not the newest instance, and it alone, was kept; the pod is\n%s", describe(s))
			}
			if !in(s, "long", runtime.ContainerRunning) {
				t.Errorf("a container that ran does not run any more; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:  "GarbageOfRemovedPods",
		says:  "CollectGarbage removes all that is dead of a pod of which Removed says that nothing need be kept, and nothing of others.",
		needs: needs[runtime.GarbageCollector]("GarbageCollector"),
		check: func(t *trial) {
			gone := t.pod(v1.RestartPolicyNever, named("short", t.suite.Exit(0)))
			kept := t.pod(v1.RestartPolicyNever, named("short", t.suite.Exit(0)))
			for _, pod := range []*v1.Pod{gone, kept} {
				t.syncUntil(pod, "short has exited", exited("short"))
				t.kill(pod, nil)
			}
			t.collect(runtime.GCPolicy{MaxPerContainer: -1, Removed: func(uid types.UID) bool { return uid == gone.UID }})
			if s := t.look(gone.UID); s.Brief() != nil {
				t.Errorf("the removed pod still is\n%s", describe(s))
			}
			if p := t.listed(gone.UID); p != nil {
				t.Errorf("the removed pod is listed: %+v", *p)
			}
			if s := t.look(kept.UID); s.Container("short") == nil {
				t.Errorf("the other pod lost its container; it is\n%s", describe(s))
			}
		},
	},
}

func needs[Power any](name string) func(Suite, runtime.Runtime) string {
	return func(_ Suite, rt runtime.Runtime) string {
		if _, ok := rt.(Power); !ok {
			return "the runtime is no " + name
		}
		return ""
	}
}

func needsExec(s Suite, rt runtime.Runtime) string {
	if s.Print == nil || len(s.Block) == 0 {
		return "there is no Suite.Print or Suite.Block"
	}
	return needs[runtime.Execer]("Execer")(s, rt)
}

func needsStreamExec(s Suite, rt runtime.Runtime) string {
	if why := needsExec(s, rt); why != "" {
		return why
	}
	return needs[runtime.StreamExecer]("StreamExecer")(s, rt)
}

func (t *trial) exec(ctx context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
	return t.rt.(runtime.Execer).Exec(ctx, id, slices.Clone(cmd), timeout)
}

func (t *trial) collect(policy runtime.GCPolicy) {
	t.Helper()
	if err := t.rt.(runtime.GarbageCollector).CollectGarbage(t.Context(), policy); err != nil {
		t.Fatalf("CollectGarbage: %v", err)
	}
}
