package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// A VolumeHolder is an optional interface of Subsystems.Volumes. Without it, Subsystems.Ledger forgets a
// pod whose volumes could not be removed, and whose cgroup therefore remains.
type VolumeHolder interface {
	// HasVolumes reports whether volumes of the pod may be mounted. It must not block.
	HasVolumes(uid types.UID) bool
}

// A sweeper removes the state of removed pods from every part of the agent, in this order:
//
//  1. probes;
//  2. terminated containers, by the policy of the Loop;
//  3. allocated resources, resource claims, volumes and Config.Retainers, of pods that do not run:
//     they are used by containers;
//  4. cgroups, whose processes may have volumes open;
//  5. the ledger, which is the evidence that the rest belongs to this node: only of pods of which
//     nothing else is left.
//
// A failure in one part does not skip the others, except the ledger. The Loop retries it.
type sweeper struct {
	runtime runtime.GarbageCollector // nil: containers are not removed
	pods    runtime.Lister
	before  []podworker.Retainer // steps 1,
	idle    []podworker.Retainer // 3
	after   []podworker.Retainer // and 4
	ledger  podworker.Retainer   // may be nil
	volumes VolumeHolder         // may be nil
}

// newSweeper returns nil if no part has state to remove.
func newSweeper(cfg Config, probes *prober.Manager) runtime.GarbageCollector {
	sub := cfg.Subsystems
	s := sweeper{pods: cfg.Runtime, ledger: sub.Ledger}
	s.runtime, _ = compose.As[runtime.GarbageCollector](cfg.Runtime)
	s.volumes, _ = compose.As[VolumeHolder](sub.Volumes)
	// A nil pointer must not become a non-nil interface.
	if probes != nil {
		s.before = append(s.before, probes)
	}
	if sub.Allocation != nil {
		s.idle = append(s.idle, sub.Allocation)
	}
	if sub.Claims != nil {
		s.idle = append(s.idle, sub.Claims)
	}
	if volumes, ok := compose.As[podworker.Retainer](sub.Volumes); ok {
		s.idle = append(s.idle, volumes)
	}
	s.idle = append(s.idle, cfg.Retainers...)
	if cgroups, ok := compose.As[podworker.Retainer](sub.Cgroups); ok {
		s.after = append(s.after, cgroups)
	}
	if s.runtime == nil && s.ledger == nil && len(s.before)+len(s.idle)+len(s.after) == 0 {
		return nil
	}
	return s
}

// CollectGarbage implements runtime.GarbageCollector. Without policy.Keep, it only removes
// terminated containers.
func (s sweeper) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	keep := policy.Keep
	if keep == nil {
		keep = func(types.UID) bool { return true }
	}
	errs := []error{retain(ctx, keep, s.before)}
	if s.runtime != nil {
		errs = append(errs, s.runtime.CollectGarbage(ctx, policy))
	}
	if policy.Keep == nil {
		return errors.Join(errs...)
	}
	running := &listing{ctx: ctx, runtime: s.pods, counts: (*runtime.Pod).MayRun}
	errs = append(errs, retain(ctx, func(uid types.UID) bool { return keep(uid) || running.has(uid) }, s.idle), running.err, retain(ctx, keep, s.after))
	if err := errors.Join(errs...); err != nil || s.ledger == nil {
		return err
	}
	existing := &listing{ctx: ctx, runtime: s.pods, counts: func(*runtime.Pod) bool { return true }} // after the removals
	err := s.ledger.Retain(ctx, func(uid types.UID) bool {
		return keep(uid) || s.volumes != nil && s.volumes.HasVolumes(uid) || existing.has(uid)
	})
	return errors.Join(err, existing.err)
}

func retain(ctx context.Context, keep func(types.UID) bool, parts []podworker.Retainer) error {
	var errs []error
	for _, part := range parts {
		errs = append(errs, part.Retain(ctx, keep))
	}
	return errors.Join(errs...)
}

// A listing has the pods of the runtime, which it lists when it is first needed: usually no pod was
// removed.
type listing struct {
	ctx     context.Context
	runtime runtime.Lister
	counts  func(*runtime.Pod) bool

	once sync.Once
	pods map[types.UID]bool
	err  error // of the list
}

// has reports whether the runtime lists such a pod, or cannot list its pods.
func (l *listing) has(uid types.UID) bool {
	l.once.Do(func() {
		pods, err := l.runtime.Pods(l.ctx)
		if err != nil {
			l.err = fmt.Errorf("list the pods of the runtime: %w", err)
			return
		}
		l.pods = make(map[types.UID]bool, len(pods))
		for _, p := range pods {
			l.pods[p.UID] = l.counts(p)
		}
	})
	return l.err != nil || l.pods[uid]
}
