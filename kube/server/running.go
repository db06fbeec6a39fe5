package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// runningTTL is the time for which a container that was running is assumed to run.
const runningTTL = time.Second

// A runningContainers reports which containers run, for all requests that follow logs. They
// share one list of the runtime about every second.
type runningContainers struct {
	rt   runtime.Lister
	turn chan struct{} // semaphore of size 1, held while listing

	mu      sync.Mutex // guards the fields below
	started int        // number of lists that were started
	current int        // number of the list that the fields below are from
	at      time.Time  // when it was complete
	running map[string]bool
	err     error
}

func newRunningContainers(rt runtime.Lister) *runningContainers {
	return &runningContainers{rt: rt, turn: make(chan struct{}, 1)}
}

// isRunning reports whether a container may still write to its log. If the runtime is
// unavailable it returns true (rule la-15). It returns false only after a list that was
// started after the call, since an older list may not contain the container yet.
func (a *runningContainers) isRunning(ctx context.Context, id string) (bool, error) {
	a.mu.Lock()
	before := a.started
	cached := a.cachedLocked(id)
	a.mu.Unlock()
	if cached {
		return true, nil
	}
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-a.turn }()
	a.mu.Lock()
	listed := a.current > before || a.cachedLocked(id) // by another request
	if !listed {
		a.started++
	}
	a.mu.Unlock()
	if !listed {
		pods, err := a.rt.Pods(ctx)
		if ctx.Err() != nil {
			return false, ctx.Err() // not the error of other requests
		}
		a.store(pods, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors.Is(a.err, runtime.ErrUnavailable) {
		return true, nil
	}
	return a.running[id], a.err
}

// cachedLocked reports whether the container was running within runningTTL.
func (a *runningContainers) cachedLocked(id string) bool {
	return a.running[id] && time.Since(a.at) < runningTTL
}

func (a *runningContainers) store(pods []*runtime.Pod, err error) {
	running := map[string]bool{}
	for _, pod := range pods {
		for _, c := range pod.Containers {
			if c.State == runtime.ContainerRunning {
				running[c.ID] = true
			}
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current, a.at, a.running, a.err = a.started, time.Now(), running, err
}
