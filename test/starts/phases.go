//go:build unix

package starts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// A starter starts and removes pods.
type starter interface {
	// start blocks until the pod runs and this was reported.
	start(ctx context.Context, name string) (milestones, error)

	// remove requests the removal of a pod, and waits for it if wait is set.
	remove(ctx context.Context, name string, wait bool) error
}

// A phase is a number of pods that are started.
type phase struct {
	name   string
	pods   int
	limit  int  // that start at a time
	remove bool // each pod once it runs
	wait   bool // for its removal, before the next is started
}

// phases returns the phases in their order.
func (o options) phases() (all []phase) {
	if o.probes > 0 {
		all = append(all, phase{name: "alone", pods: o.probes, limit: 1, remove: true, wait: true})
	}
	if o.fill > 0 {
		all = append(all, phase{name: "fill", pods: o.fill, limit: o.fill})
	}
	for _, n := range o.inFlight {
		all = append(all, phase{name: fmt.Sprint(n, " in flight"), pods: max(2*n, 20), limit: n, remove: true})
	}
	return all
}

// run starts the pods of a phase.
func (p phase) run(ctx context.Context, s starter) ([]milestones, error) {
	var mu sync.Mutex
	var done []milestones
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(p.limit)
	begun := time.Now().UnixNano()
	for i := range p.pods {
		group.Go(func() error {
			name := fmt.Sprintf("pod-%d-%d", begun, i)
			m, err := s.start(ctx, name)
			if err != nil {
				return err
			}
			mu.Lock()
			done = append(done, m)
			mu.Unlock()
			if p.remove {
				return s.remove(ctx, name, p.wait)
			}
			return nil
		})
	}
	return done, group.Wait()
}
