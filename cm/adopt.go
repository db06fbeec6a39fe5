package cm

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// An adopted cgroup belongs to a pod that an earlier agent started. Until Ensure is
// called for the pod, or its cgroup is removed, its resources count in the demand of its
// class: otherwise the limits of the class would be below the usage of its pods.
type adopted struct {
	name      cgroups.Name
	class     v1.PodQOSClass
	requested podRequest
}

// adoptPods counts the pods that have cgroups and that Ensure was not called for. A
// cgroup that can't be read is left out.
func (m *Manager) adoptPods() error {
	var errs []error
	err := m.podCgroups(func(class v1.PodQOSClass, uid types.UID, name cgroups.Name) {
		has, err := m.cfg.Tree.Read(name)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.pods[uid] != nil || slices.ContainsFunc(m.adopted[uid], func(a adopted) bool { return slices.Equal(a.name, name) }) {
			return
		}
		a := adopted{name: name, class: class, requested: requestedOf(class, has)}
		m.adopted[uid] = append(m.adopted[uid], a)
		m.demand.add(a.class, a.requested)
	})
	return errors.Join(append(errs, err)...)
}

// podCgroups calls f for each cgroup of a pod.
func (m *Manager) podCgroups(f func(v1.PodQOSClass, types.UID, cgroups.Name)) error {
	for _, class := range classes {
		children, err := m.cfg.Tree.Children(m.root.Child(classPart(class)...))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cm: list cgroups of pods: %w", err)
		}
		for _, name := range children {
			if uid := types.UID(name.PodUID()); uid != "" {
				f(class, uid, name)
			}
		}
	}
	return nil
}

// release stops counting the adopted cgroups of a pod, and reports whether there
// were any. The caller must hold m.mu.
func (m *Manager) release(uid types.UID) bool {
	all, ok := m.adopted[uid]
	for _, a := range all {
		m.demand.sub(a.class, a.requested)
	}
	delete(m.adopted, uid)
	return ok
}

// releaseVanished stops counting adopted pods whose cgroups something else has
// removed.
func (m *Manager) releaseVanished() {
	m.mu.Lock()
	names := map[types.UID][]cgroups.Name{}
	for uid, all := range m.adopted {
		for _, a := range all {
			names[uid] = append(names[uid], a.name)
		}
	}
	m.mu.Unlock()
	for uid, all := range names {
		if !slices.ContainsFunc(all, m.cfg.Tree.Exists) {
			m.mu.Lock()
			m.release(uid)
			m.mu.Unlock()
		}
	}
}

// requestedOf returns the most that a pod of the class can request whose cgroup has
// this: CPU shares and weights are rounded.
func requestedOf(class v1.PodQOSClass, has cgroups.Resources) podRequest {
	var out podRequest
	shares := int64(0)
	switch {
	case has.CPUWeight != nil:
		shares = cgroups.MaxSharesOfWeight(*has.CPUWeight)
	case has.CPUShares != nil:
		shares = *has.CPUShares
	}
	out.MilliCPU = cgroups.MaxMilliOfShares(shares)
	protects := []*int64{has.MemoryMin, has.MemoryLow}
	if class == v1.PodQOSGuaranteed { // its limit is its request
		protects = append(protects, has.Memory)
	}
	for _, v := range protects {
		if v != nil {
			out.Memory = max(out.Memory, min(*v, mostMemory))
		}
	}
	return out
}
