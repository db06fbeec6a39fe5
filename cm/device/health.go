package device

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Health returns the health of the devices of a pod by container, for its status. A
// device that no connected plugin reports is Unknown.
func (m *Manager) Health(uid types.UID) map[string][]v1.ResourceStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out map[string][]v1.ResourceStatus
	for h, grants := range m.ledger.grants {
		if h.uid != uid {
			continue
		}
		if out == nil {
			out = map[string][]v1.ResourceStatus{}
		}
		for _, name := range slices.Sorted(maps.Keys(grants)) {
			s := v1.ResourceStatus{Name: v1.ResourceName(name)}
			for _, id := range slices.Sorted(maps.Keys(grants[name].IDs)) {
				s.Resources = append(s.Resources, v1.ResourceHealth{ResourceID: v1.ResourceID(id), Health: m.ledger.health(name, id)})
			}
			out[h.name] = append(out[h.name], s)
		}
	}
	return out
}

// health returns the health of a device.
func (l *ledger) health(name, id string) v1.ResourceHealthStatus {
	r := l.resources[name]
	if r == nil || !r.listed {
		return v1.ResourceHealthStatusUnknown
	}
	switch d, is := r.devices[id]; {
	case !is:
		return v1.ResourceHealthStatusUnknown
	case d.Healthy:
		return v1.ResourceHealthStatusHealthy
	}
	return v1.ResourceHealthStatusUnhealthy
}
