package cm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// Has reports whether the pod's cgroup exists, for pipeline.Cgroups. A cgroup that
// cannot be read or lacks a controller counts as existing: Ensure corrects it.
func (m *Manager) Has(pod *v1.Pod) bool {
	if m.cfg.Pods.Flat {
		return true
	}
	return m.cfg.Tree.Exists(m.PodName(pod))
}

// Pods returns the pods that have cgroups, with the names of these.
func (m *Manager) Pods() (map[types.UID][]cgroups.Name, error) {
	out := map[types.UID][]cgroups.Name{}
	if m.cfg.Pods.Flat {
		return out, nil
	}
	err := m.podCgroups(func(_ v1.PodQOSClass, uid types.UID, name cgroups.Name) { out[uid] = append(out[uid], name) })
	if err != nil {
		return nil, err
	}
	return out, nil
}

// atOnce is the number of cgroups that are removed concurrently: each removal may wait
// for processes.
const atOnce = 8

// Retain removes the cgroups of the pods that keep rejects and that belong to this node;
// those of other nodes are logged once. It lists the cgroups before it calls keep, so that a
// pod that is created meanwhile keeps its cgroup (hk-2). A pod with volumes, as
// PodCgroups.HasVolumes reports, keeps its cgroup with the least CPU until a later call (cm-44).
// The error joins what failed; the next call retries it. It implements podworker.Retainer.
func (m *Manager) Retain(ctx context.Context, keep func(uid types.UID) bool) error {
	pods, err := m.Pods()
	if err != nil {
		return err
	}
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		errs  []error
		turns = make(chan struct{}, atOnce)
	)
	for _, uid := range slices.Sorted(maps.Keys(pods)) {
		if !m.owns(uid) {
			m.reportForeign(pods[uid])
			continue
		}
		turns <- struct{}{}
		if keep(uid) { // the pod may have been added again meanwhile
			<-turns
			continue
		}
		wg.Go(func() {
			defer func() { <-turns }()
			if err := m.collectPod(ctx, uid, pods[uid], m.cfg.Pods.HasVolumes != nil && m.cfg.Pods.HasVolumes(uid)); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (m *Manager) collectPod(ctx context.Context, uid types.UID, names []cgroups.Name, hasVolumes bool) error {
	if hasVolumes {
		m.forget(uid)
		for _, name := range names {
			least := cgroups.Resources{CPUShares: new(int64(cgroups.MinShares))}
			if has, err := m.cfg.Tree.Read(name); err != nil || len(cgroups.Drift(has, m.facts.AsRead(least))) == 0 {
				continue // removed meanwhile, or already set
			}
			if err := m.apply(ctx, "update", name, least); err != nil {
				return err
			}
		}
		return nil
	}
	if err := m.Remove(ctx, uid); err != nil {
		return err
	}
	for _, name := range names {
		if err := m.destroy(ctx, name); err != nil {
			return fmt.Errorf("cm: remove cgroup %s: %w", name, err)
		}
	}
	return nil
}

// forget stops counting a pod without changing its cgroup, and reports whether it was
// counted.
func (m *Manager) forget(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	counted := m.release(uid)
	if h := m.pods[uid]; h != nil {
		delete(m.pods, uid)
		m.demand.sub(h.class, h.requested)
		counted = true
	}
	return counted
}
