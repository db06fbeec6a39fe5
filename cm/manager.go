package cm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/internal/podspec"
)

// Allocatable returns the allocatable resources of the node.
func (m *Manager) Allocatable() v1.ResourceList { return Allocatable(m.cfg.Capacity, m.cfg.Reserved) }

// PodName returns the cgroup of the pod; with Flat the cgroup that contains all pods.
func (m *Manager) PodName(pod *v1.Pod) cgroups.Name {
	if m.cfg.Pods.Flat {
		return m.root
	}
	return PodName(m.cfg.Root, pod)
}

// CgroupParent returns the parent cgroup for the pod's containers, for cri.Cgroups.
func (m *Manager) CgroupParent(pod *v1.Pod) string { return m.PodName(pod).Path(m.cfg.Driver) }

// PodsRoot returns the cgroup that contains all pods.
func (m *Manager) PodsRoot() cgroups.Name { return m.root }

// Ensure creates the pod's cgroup with the resources of its spec, or corrects it. CPU and
// memory of a pod that was ensured before are changed only by [Manager.Resize], which
// keeps the order of a resize. A cgroup that was created or checked within the last five
// minutes only has to exist: [Manager.Sync] corrects it at once.
func (m *Manager) Ensure(ctx context.Context, pod *v1.Pod) error {
	if m.cfg.Pods.Flat {
		return nil // cm-21
	}
	if pod.UID == "" {
		return fmt.Errorf("cm: pod %s/%s has no UID", pod.Namespace, pod.Name)
	}
	h, known := m.hold(pod)
	if err := h.busy.take(ctx); err != nil {
		return err
	}
	defer h.busy.give()
	if time.Since(h.checked) < checkPeriod && m.cfg.Tree.Exists(h.name) {
		return nil
	}
	has, err := m.cfg.Tree.Read(h.name)
	missing := errors.Is(err, fs.ErrNotExist)
	if m.cfg.Pods.Ledger != nil && (missing || err == nil && !known) {
		if err := m.cfg.Pods.Ledger.Own(pod.UID); err != nil {
			return fmt.Errorf("cm: %w", err)
		}
	}
	if missing || !known {
		if err := m.updateQOS(ctx, false); err != nil { // before the pod's own cgroup (cm-18)
			m.log.Warn("Failed to set cgroups of QoS classes; will retry", "err", err)
		}
	}
	switch {
	case missing:
		err := m.apply(ctx, "create", h.name, h.desired)
		if err == nil {
			h.checked = time.Now()
		}
		return err
	case err != nil:
		return fmt.Errorf("cm: cgroup of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	case !known:
		h.desired = m.adopt(h, has)
	}
	return m.repair(ctx, h, has)
}

// hold returns the held pod, and whether it was held before the call.
func (m *Manager) hold(pod *v1.Pod) (h *cgroupState, known bool) {
	m.mu.Lock()
	h, known = m.pods[pod.UID]
	m.mu.Unlock()
	if known {
		return h, true
	}
	// The functions of Config are called without mu.
	fresh := &cgroupState{busy: newTurn(), class: podspec.QOSClass(pod), requested: requestedBy(pod), desired: m.cfg.Policy.PodResources(pod)}
	fresh.name = podName(m.cfg.Root, fresh.class, string(pod.UID))
	m.mu.Lock()
	defer m.mu.Unlock()
	if h, known = m.pods[pod.UID]; known {
		return h, true
	}
	m.pods[pod.UID], m.ours[pod.UID] = fresh, true
	m.release(pod.UID)
	m.demand.add(fresh.class, fresh.requested)
	return fresh, false
}

// adopt returns the desired resources of a cgroup of an earlier agent. Limits are not
// reduced below those of its containers: the runtime continues a resize that was
// interrupted.
func (m *Manager) adopt(h *cgroupState, has cgroups.Resources) cgroups.Resources {
	wanted := h.desired
	children, err := m.cfg.Tree.Children(h.name)
	if err != nil {
		children = nil
	}
	for _, child := range children {
		given, err := m.cfg.Tree.Read(child)
		if err != nil {
			continue
		}
		if narrower(wanted.Memory, given.Memory) {
			wanted.Memory = has.Memory
		}
		if narrower(wanted.CPUQuota, given.CPUQuota) {
			wanted.CPUQuota = has.CPUQuota
		}
	}
	return wanted
}

// narrower reports whether limit is less than the limit of a container. A container
// without a limit has that of the pod.
func narrower(limit, given *int64) bool {
	return limit != nil && given != nil && *limit >= 0 && *given >= 0 && *limit < *given
}

// repair sets the values that differ from the desired ones. The caller must hold h.busy.
func (m *Manager) repair(ctx context.Context, h *cgroupState, has cgroups.Resources) error {
	changes := cgroups.Drift(has, m.facts.AsRead(h.desired))
	if len(changes) > 0 {
		if err := m.apply(ctx, "update", h.name, h.desired); err != nil {
			return err
		}
		m.log.Info("Corrected a cgroup that another program had changed", "cgroup", h.name, "changes", changes)
		m.cfg.Hooks.Repaired(h.name, changes)
	}
	h.checked = time.Now()
	return nil
}

// Remove kills the remaining processes in the pod's cgroup and removes it. It is not an
// error if the pod has none.
func (m *Manager) Remove(ctx context.Context, uid types.UID) error {
	if m.cfg.Pods.Flat || uid == "" {
		return nil
	}
	m.mu.Lock()
	h := m.pods[uid]
	m.mu.Unlock()
	names := []cgroups.Name{}
	if h != nil {
		if err := h.busy.take(ctx); err != nil {
			return err
		}
		defer h.busy.give()
		names = append(names, h.name)
	} else {
		for _, class := range classes {
			names = append(names, podName(m.cfg.Root, class, string(uid)))
		}
	}
	for _, name := range names {
		if name.Check() != nil {
			continue // no such cgroup can exist
		}
		if h == nil && !m.cfg.Tree.Exists(name) {
			continue
		}
		if err := m.destroy(ctx, name); err != nil {
			return fmt.Errorf("cm: remove cgroup of pod %s: %w", uid, err)
		}
	}
	m.mu.Lock()
	delete(m.ours, uid)
	m.mu.Unlock()
	if m.forget(uid) {
		if err := m.updateQOS(ctx, false); err != nil { // after the pod's own cgroup (cm-18)
			m.log.Warn("Failed to set cgroups of QoS classes; will retry", "err", err)
		}
	}
	return nil
}

// classes are the QoS classes.
var classes = []v1.PodQOSClass{v1.PodQOSGuaranteed, v1.PodQOSBurstable, v1.PodQOSBestEffort}

// apply calls Tree.Apply and the hook.
func (m *Manager) apply(ctx context.Context, op string, name cgroups.Name, r cgroups.Resources) error {
	began := time.Now()
	err := m.cfg.Tree.Apply(ctx, name, r)
	m.cfg.Hooks.Operation(OperationInfo{Type: op, Name: name, Duration: time.Since(began), Err: err})
	if err != nil {
		return fmt.Errorf("cm: %s cgroup: %w", op, err)
	}
	return nil
}

func (m *Manager) destroy(ctx context.Context, name cgroups.Name) error {
	began := time.Now()
	err := m.cfg.Tree.Remove(ctx, name)
	m.cfg.Hooks.Operation(OperationInfo{Type: "destroy", Name: name, Duration: time.Since(began), Err: err})
	return err
}
