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

// healthRequirements are the requirements of [runtime.Checker] and [runtime.Watcher].
var healthRequirements = []requirement{
	{
		name:     "CheckReportsHealthyRuntime",
		text:     "Check of a runtime that can start containers returns no error, and a Health whose Runtime is nil.",
		contract: "Checker.Check, Health",
		cause:    "conditions that the backend does not have are treated as false",
		needs:    []string{"Checker"},
		check: func(t *checkT) {
			h, err := as[runtime.Checker](t).Check(t.Context())
			if err != nil || h.Runtime != nil {
				t.Errorf("Check returned %+v, %v", h, err)
			}
		},
	},
	{
		name:     "WatchReportsChanges",
		text:     "Watch calls changed with the UID of a pod that may have changed, never concurrently, until ctx is done, and then returns nil.",
		contract: "Watcher.Watch",
		cause:    "events have the ID of the backend's object instead of the pod's UID, or ctx's error is returned",
		needs:    []string{"Watcher"},
		check: func(t *checkT) {
			w := t.watch()
			var pod *v1.Pod
			for try := 1; pod == nil || !w.notified(pod.UID, t.suite.Timing.Timeout/5, nil); try++ {
				if try > 5 {
					t.Error("no event after the start of a pod")
					return
				}
				pod = t.pod(v1.RestartPolicyNever, named("long", t.suite.Containers.Long))
				t.sync(pod)
			}
			w.drop() // further events of the start
			t.kill(pod, nil)
			if !w.notified(pod.UID, t.suite.Timing.Timeout, nil) {
				t.Error("no event after a pod was killed")
				return
			}
			w.cancel()
			select {
			case err := <-w.result:
				if err != nil {
					t.Errorf("when its context was canceled, Watch returned %v", err)
				}
			case <-time.After(t.suite.Timing.Timeout):
				t.Error("Watch did not return after its context was canceled")
			}
		},
	},
	{
		name:     "EachWatchReceivesEvents",
		text:     "Each Watch is notified of an exit, from one goroutine, and does not call changed after it has returned.",
		contract: "Watcher.Watch; package runtime, Concurrency",
		cause:    "one stream of events is shared, so that one watcher consumes another's event, or changed is called from a goroutine per event",
		needs:    []string{"Watcher"},
		check: func(t *checkT) {
			type watcher struct {
				events chan types.UID
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
				w := &watcher{events: make(chan types.UID, 1024)}
				watchers[i] = w
				watching.Go(func() {
					err := as[runtime.Watcher](t).Watch(ctx, func(uid types.UID) {
						if w.inside.Add(1) > 1 {
							t.Errorf("changed is called concurrently")
						}
						if w.over.Load() {
							t.Errorf("changed is called after Watch has returned")
						}
						select {
						case w.events <- uid:
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
				notifiedWatches := 0
				for _, w := range watchers {
					deadline := time.After(t.suite.Timing.Timeout / 5)
				events:
					for {
						select {
						case uid := <-w.events:
							if uid == pod.UID {
								notifiedWatches++
								break events
							}
						case err := <-ends:
							if errors.Is(err, runtime.ErrUnsupported) || err != nil && notifiedWatches == 0 {
								t.Skipf("Watch returned an error (its caller lists instead): %v", err)
							}
							t.Errorf("Watch returned before its context was done: %v", err)
							return
						case <-deadline:
							break events
						}
					}
				}
				if notifiedWatches == len(watchers) {
					break
				}
				if try == 3 {
					t.Errorf("%d of %d watches received an event after an exit", notifiedWatches, len(watchers))
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
		text:     "When ctx is done Check returns. If it fails for that reason, its error is ctx's.",
		contract: "Checker.Check; errors of package runtime",
		cause:    "the backend's error is returned without ctx's",
		needs:    []string{"Checker"},
		check: func(t *checkT) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if h, err := as[runtime.Checker](t).Check(ctx); err != nil && !ended(err) {
				t.Errorf("with a canceled context, Check returned %+v, %v", h, err)
			}
		},
	},
}
