package cm

import (
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// A Ledger records which pods belong to this node: cri.Ledger. Its methods must be safe for
// concurrent use.
type Ledger interface {
	// Owns reports whether the pod belongs to this node. It must not block.
	Owns(uid types.UID) bool

	// Own adds a pod, before its cgroup is created. Other pods that share the machine are
	// those of other nodes.
	Own(uid types.UID) error
}

// ErrForeign is in the chain of the error of [Manager.Setup] if processes run in cgroups of
// pods that do not belong to this node.
var ErrForeign = errors.New("processes run in cgroups of pods that this node does not know")

// owns reports whether the pod belongs to this node: Ensure was called for it, or the
// ledger contains it.
func (m *Manager) owns(uid types.UID) bool {
	recorded := m.cfg.Pods.Ledger != nil && m.cfg.Pods.Ledger.Owns(uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	if recorded {
		m.ours[uid] = true // until the cgroup is removed
	}
	return m.ours[uid]
}

// checkForeign returns ErrForeign if another node manages cgroups below the root.
func (m *Manager) checkForeign() error {
	if m.cfg.Pods.IgnoreForeign {
		return nil
	}
	var first string
	var errs []error
	pods := 0
	err := m.podCgroups(func(_ v1.PodQOSClass, uid types.UID, name cgroups.Name) {
		if m.owns(uid) {
			return
		}
		pids, err := m.cfg.Tree.Processes(name)
		if err != nil {
			errs = append(errs, err)
		}
		if len(pids) == 0 {
			return
		}
		if pods++; pods == 1 {
			first = fmt.Sprintf("%s has processes %v", name.Path(m.cfg.Driver), pids[:min(len(pids), maxListed)])
		}
	})
	if err = errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("cm: look for pods of other nodes: %w", err)
	}
	if pods == 0 {
		return nil
	}
	return fmt.Errorf("cm: %w: %d pods below %s; %s", ErrForeign, pods, m.root.Path(m.cfg.Driver), first)
}

// maxListed is the maximum number of processes in an error.
const maxListed = 5

// reportForeign logs once that a cgroup of another node is left unchanged.
func (m *Manager) reportForeign(names []cgroups.Name) {
	for _, name := range names {
		path := name.Path(m.cfg.Driver)
		m.mu.Lock()
		known := slices.Contains(m.reported, path)
		if !known && len(m.reported) < maxReported {
			m.reported = append(m.reported, path)
		}
		m.mu.Unlock()
		if !known {
			m.log.Warn("Cgroup of a pod that does not belong to this node is left unchanged", "cgroup", path)
		}
	}
}

// maxReported bounds the memory for reported cgroups.
const maxReported = 10_000

// checkWritable returns an error if an existing cgroup cannot be changed.
func (m *Manager) checkWritable(name cgroups.Name) error {
	if err := m.cfg.Tree.CheckWritable(name); err != nil {
		return fmt.Errorf("cm: set up %s: %w", name, err)
	}
	return nil
}
