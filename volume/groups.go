package volume

import (
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// gidAnnotation of a persistent volume is the group that its files belong to.
const gidAnnotation = "pv.beta.kubernetes.io/gid"

// Groups returns the groups of the pod's persistent volumes, sorted, which all
// of its containers are to be in (vol-68). It knows those that Mount was called
// for.
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
