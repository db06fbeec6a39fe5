package runtimetest

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A watch is a call of Watch.
type watch struct {
	t      *checkT
	events chan types.UID // further ones are dropped
	result chan error
	cancel context.CancelFunc
}

// watch calls Watch until cancel is called or the check ends. Changes before the call has begun may have no event,
// so that it waits.
func (t *checkT) watch() *watch {
	ctx, cancel := context.WithCancel(t.Context())
	w := &watch{t: t, events: make(chan types.UID, 1024), result: make(chan error, 1), cancel: cancel}
	var watching sync.WaitGroup
	watching.Go(func() {
		w.result <- as[runtime.Watcher](t).Watch(ctx, func(uid types.UID) {
			select {
			case w.events <- uid:
			default: // changed must not block
			}
		})
	})
	t.Cleanup(watching.Wait)
	t.Cleanup(cancel)
	w.drop()
	return w
}

// drop drops the events until now, and those that follow soon.
func (w *watch) drop() {
	w.t.pause(10 * w.t.suite.Timing.PollInterval)
	for len(w.events) > 0 {
		<-w.events
	}
}

// notified reports whether a pod has an event within timeout, after which an inspection returns an expected status;
// any status if is is nil.
func (w *watch) notified(uid types.UID, timeout time.Duration, is func(*runtime.PodStatus) bool) bool {
	deadline := time.After(timeout)
	for {
		select {
		case got := <-w.events:
			if got == uid && (is == nil || is(w.t.look(uid))) {
				return true
			}
		case err := <-w.result:
			w.t.Skipf("Watch returned an error (its caller lists instead): %v", err)
		case <-deadline:
			return false
		}
	}
}
