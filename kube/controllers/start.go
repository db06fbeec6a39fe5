package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// readyTimeout is the time in which Start expects the caches to be synchronized.
const readyTimeout = time.Minute

// A TB is the part of a test that [Start] uses: a *testing.T, or Ginkgo's GinkgoT().
type TB interface {
	Helper()
	Cleanup(func())
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Start runs controllers for a test, as [Run] does, until stop is called, the test ends, or
// ctx is done, whichever is first. It returns when their caches are synchronized; if they
// are not within a minute, or a controller cannot be constructed, the test fails.
//
// stop returns when the controllers have stopped; further calls have no effect. They must
// stop before the API server does, as fake nodes must: see [fakenode.Start].
//
// [fakenode.Start]: https://pkg.go.dev/github.com/kubeparts/kubeparts/kube/fakenode#Start
func Start(ctx context.Context, t TB, api *rest.Config, cfg Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(ctx)
	ready, stopped := make(chan error, 1), make(chan error, 1)
	go func() {
		stopped <- run(ctx, api, cfg, func(err error) { ready <- err })
	}()
	stop = sync.OnceFunc(func() {
		cancel(context.Canceled)
		if err := <-stopped; err != nil {
			t.Logf("%v", err)
		}
	})
	t.Cleanup(stop)
	timeout := time.AfterFunc(readyTimeout, func() { cancel(fmt.Errorf("timeout after %v", readyTimeout)) })
	defer timeout.Stop()
	select {
	case err := <-ready:
		if err != nil {
			t.Fatalf("controllers: %v (is the API server running, does it serve these resources, and may this user list and watch them?)", err)
		}
	case err := <-stopped:
		stopped <- nil // for stop
		t.Fatalf("%v", err)
	}
	return stop
}
