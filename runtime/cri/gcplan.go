package cri

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A GarbagePlan is what a collection would remove now, in its order (F-38).
type GarbagePlan struct {
	Containers []GarbageContainer
	Sandboxes  []string // IDs; those are left out that hold containers which stay
}

// A GarbageContainer is one that goes.
type GarbageContainer struct {
	Pod    types.UID
	Name   string
	ID     string
	Reason string // why, in words
}

// PlanGarbage tells what [Runtime.CollectGarbage] would remove with that policy,
// and removes nothing.
func (r *Runtime) PlanGarbage(ctx context.Context, policy runtime.GCPolicy) (GarbagePlan, error) {
	pods, err := r.Pods(ctx)
	if err != nil {
		return GarbagePlan{}, err
	}
	var p GarbagePlan
	gone := map[string]bool{}
	for _, d := range deadContainers(pods, policy, time.Now()) {
		gone[d.container.ID] = true
		p.Containers = append(p.Containers, GarbageContainer{Pod: d.pod.UID, Name: d.container.Name, ID: d.container.ID, Reason: d.why})
	}
	p.Sandboxes = deadSandboxes(pods, gone, policy)
	return p, nil
}

// String lists it, a line for each.
func (p GarbagePlan) String() string {
	var b strings.Builder
	for _, c := range p.Containers {
		fmt.Fprintf(&b, "container %s: %s\n", c.ID, c.Reason)
	}
	for _, id := range p.Sandboxes {
		fmt.Fprintf(&b, "sandbox %s\n", id)
	}
	return b.String()
}

// A sandbox that could not be removed so often is left alone for a while, which
// doubles.
const (
	mostTries = 3
	firstRest = time.Minute
	mostRest  = 15 * time.Minute
)

// A stuckSandboxes remembers the sandboxes that cannot be removed. The zero value
// is empty.
type stuckSandboxes struct {
	mu  sync.Mutex // guards the field below
	all map[string]stuckSandbox
}

type stuckSandbox struct {
	until time.Time
	tries int
}

func (s *stuckSandboxes) due(id string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !now.Before(s.all[id].until)
}

func (s *stuckSandboxes) tried(id string, failed bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !failed {
		delete(s.all, id)
		return
	}
	if s.all == nil {
		s.all = map[string]stuckSandbox{}
	}
	n := s.all[id].tries + 1
	rest := time.Duration(0)
	if n >= mostTries {
		rest = min(firstRest<<min(n-mostTries, 10), mostRest)
	}
	s.all[id] = stuckSandbox{now.Add(rest), n}
}

// forget drops those that are none any more.
func (s *stuckSandboxes) forget(but []string) {
	keep := map[string]bool{}
	for _, id := range but {
		keep[id] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.all {
		if !keep[id] {
			delete(s.all, id)
		}
	}
}
