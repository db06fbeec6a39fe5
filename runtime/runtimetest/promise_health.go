package runtimetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// healthPromises are those of [runtime.Checker] and [runtime.Watcher].
var healthPromises = []promise{
	{
		name:     "CheckIsHealthy",
		text:     "Check of a runtime that can start containers returns no error, and a Health whose Runtime is nil.",
		contract: "Checker.Check, Health",
		cause:    "conditions the backend does not have are read as false",
		needs:    []string{"Checker"},
		check: func(t *trial) {
			h, err := as[runtime.Checker](t).Check(t.Context())
			if err != nil || h.Runtime != nil {
				t.Errorf("Check says %+v, %v", h, err)
			}
		},
	},
	{
		name:     "WatchHints",
		text:     "Watch calls changed with the UID of a pod that may have changed, one call at a time, until ctx ends, and then returns nil.",
		contract: "Watcher.Watch",
		cause:    "hints name the backend's object, not the pod's UID, or the end of ctx is returned as an error",
		needs:    []string{"Watcher"},
		check: func(t *trial) {
			ctx, cancel := context.WithCancel(t.Context())
			hints := make(chan types.UID, 1024)
			result := make(chan error, 1)
			var watching sync.WaitGroup
			defer watching.Wait()
			defer cancel()
			watching.Go(func() {
				result <- as[runtime.Watcher](t).Watch(ctx, func(uid types.UID) {
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
			t.pause(10 * t.suite.Timing.PollInterval)
			var pod *v1.Pod
			for try := 1; pod == nil || !hinted(pod.UID, t.suite.Timing.Timeout/5); try++ {
				if try > 5 {
					t.Error("no hint after the start of a pod")
					return
				}
				pod = t.pod(v1.RestartPolicyNever, named("long", t.suite.Containers.Long))
				t.sync(pod)
			}
			t.pause(10 * t.suite.Timing.PollInterval) // for what else the start hints at
			for len(hints) > 0 {
				<-hints
			}
			t.kill(pod, nil)
			if !hinted(pod.UID, t.suite.Timing.Timeout) {
				t.Error("no hint after the end of a pod")
				return
			}
			cancel()
			select {
			case err := <-result:
				if err != nil {
					t.Errorf("at the end of its context Watch returned %v", err)
				}
			case <-time.After(t.suite.Timing.Timeout):
				t.Error("Watch goes on after the end of its context")
			}
		},
	},
	{
		name:     "WatchersAreMany",
		text:     "Each Watch hears of an exit on its own, from one goroutine, and calls changed no more once it has returned.",
		contract: "Watcher.Watch; package runtime, Concurrency",
		cause:    "one stream of events is shared, so that one watcher takes another's hint, or changed is called from a goroutine per event",
		needs:    []string{"Watcher"},
		check: func(t *trial) {
			type watcher struct {
				hints  chan types.UID
				inside atomic.Int32
				over   atomic.Bool
			}
			var watchers [2]*watcher
			ctx, cancel := context.WithCancel(t.Context())
			ends := make(chan error, len(watchers))
			var watching sync.WaitGroup
			defer watching.Wait()
			defer cancel()
			for i := range watchers {
				w := &watcher{hints: make(chan types.UID, 1024)}
				watchers[i] = w
				watching.Go(func() {
					err := as[runtime.Watcher](t).Watch(ctx, func(uid types.UID) {
						if w.inside.Add(1) > 1 {
							t.Errorf("changed is called while it is under way")
						}
						if w.over.Load() {
							t.Errorf("changed is called after Watch has returned")
						}
						select {
						case w.hints <- uid:
						default:
						}
						w.inside.Add(-1)
					})
					w.over.Store(true)
					ends <- err
				})
			}
			t.pause(10 * t.suite.Timing.PollInterval)
			for try := 1; ; try++ {
				pod := t.pod(v1.RestartPolicyNever, named("short", t.suite.Containers.Exit(0)), named("brief", t.suite.Containers.Exit(0)))
				t.sync(pod)
				t.await(pod.UID, "both have exited", func(s *runtime.PodStatus) bool { return exited("short")(s) && exited("brief")(s) })
				heard := 0
				for _, w := range watchers {
					deadline := time.After(t.suite.Timing.Timeout / 5)
				hints:
					for {
						select {
						case uid := <-w.hints:
							if uid == pod.UID {
								heard++
								break hints
							}
						case err := <-ends:
							if errors.Is(err, runtime.ErrUnsupported) || err != nil && heard == 0 {
								t.Skipf("Watch cannot go on (its caller would list): %v", err)
							}
							t.Errorf("Watch has returned before its context ended: %v", err)
							return
						case <-deadline:
							break hints
						}
					}
				}
				if heard == len(watchers) {
					break
				}
				if try == 3 {
					t.Errorf("%d of %d watchers heard of an exit", heard, len(watchers))
					return
				}
			}
			cancel()
			watching.Wait()
			pod := t.pod(v1.RestartPolicyNever, named("long", t.suite.Containers.Long))
			t.sync(pod)
			t.pause(2 * t.suite.Timing.PollInterval)
		},
	},
	{
		name:     "CheckObeysItsContext",
		text:     "When ctx ends Check returns. If that made it fail, its error is ctx's.",
		contract: "Checker.Check; errors of package runtime",
		cause:    "the backend's own error is passed on without ctx's",
		needs:    []string{"Checker"},
		check: func(t *trial) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if h, err := as[runtime.Checker](t).Check(ctx); err != nil && !ended(err) {
				t.Errorf("with a context that had ended Check says %+v, %v", h, err)
			}
		},
	},
}
