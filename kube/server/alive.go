package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// aliveFor is how long it is believed of a container that it runs.
const aliveFor = time.Second

// An alive knows which containers can still write, for all who follow logs: it lists
// what runs about once a second, however many they are.
type alive struct {
	rt   runtime.Lister
	turn chan struct{} // of who lists; holds one

	mu      sync.Mutex // guards the fields below
	begun   int        // lists so far
	told    int        // the number of the list that the rest is from
	at      time.Time  // when it was there
	running map[string]bool
	err     error
}

func newAlive(rt runtime.Lister) *alive { return &alive{rt: rt, turn: make(chan struct{}, 1)} }

// can reports whether a container can still write. One whose runtime does not answer
// can (la-15). That it cannot is never said by a list that was begun before it was
// asked: the container may be younger than that.
func (a *alive) can(ctx context.Context, id string) (bool, error) {
	a.mu.Lock()
	asked := a.begun
	known := a.knownLocked(id)
	a.mu.Unlock()
	if known {
		return true, nil
	}
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-a.turn }()
	a.mu.Lock()
	listed := a.told > asked || a.knownLocked(id) // by somebody, meanwhile
	if !listed {
		a.begun++
	}
	a.mu.Unlock()
	if !listed {
		pods, err := a.rt.Pods(ctx)
		if ctx.Err() != nil {
			return false, ctx.Err() // it is nobody else's error
		}
		a.keep(pods, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors.Is(a.err, runtime.ErrUnavailable) {
		return true, nil
	}
	return a.running[id], a.err
}

// knownLocked reports whether the container ran just now.
func (a *alive) knownLocked(id string) bool { return a.running[id] && time.Since(a.at) < aliveFor }

func (a *alive) keep(pods []*runtime.Pod, err error) {
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
	a.told, a.at, a.running, a.err = a.begun, time.Now(), running, err
}
