package volume

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// gidAnnotation is the annotation of a persistent volume with the GID of its files.
const gidAnnotation = "pv.beta.kubernetes.io/gid"

// Groups returns the supplemental groups that all containers of the pod must have because of its
// persistent volumes, sorted. It considers the volumes that Mount was called for. Safe for concurrent
// use.
func (m *Manager) Groups(pod *v1.Pod) []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var groups []int64
	for _, v := range m.world.pods[pod.UID] {
		if v.spec == nil || v.spec.PV == nil {
			continue
		}
		if gid, err := strconv.ParseInt(v.spec.PV.Annotations[gidAnnotation], 10, 64); err == nil && gid > 0 {
			groups = append(groups, gid)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}
