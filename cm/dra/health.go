package dra

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// HealthReporter returns the health of a device. registry.Registry.Health implements it.
type HealthReporter = func(driver, pool, device string) (status v1.ResourceHealthStatus, message string)

// Health returns the health of the devices that the containers of a pod have through
// claims, by container, for status.containerStatuses[].allocatedResourcesStatus. It does
// not block.
func (m *Manager) Health(pod *v1.Pod, health HealthReporter) map[string][]v1.ResourceStatus {
	var out map[string][]v1.ResourceStatus
	for c := range podspec.Containers(pod) {
		devices, ok, err := m.devices(pod, c)
		if err != nil || !ok || len(devices) == 0 {
			continue
		}
		if out == nil {
			out = map[string][]v1.ResourceStatus{}
		}
		out[c.Name] = resourceStatuses(devices, health)
	}
	return out
}

// resourceStatuses returns the health of devices by resource, each device once.
func resourceStatuses(devices []UsedDevice, health HealthReporter) []v1.ResourceStatus {
	var all []v1.ResourceStatus
	for _, d := range devices {
		i := slices.IndexFunc(all, func(s v1.ResourceStatus) bool { return s.Name == d.resource })
		if i < 0 {
			all = append(all, v1.ResourceStatus{Name: d.resource})
			i = len(all) - 1
		}
		id := v1.ResourceID(d.Driver + "/" + d.Pool + "/" + d.Name)
		if slices.ContainsFunc(all[i].Resources, func(r v1.ResourceHealth) bool { return r.ResourceID == id }) {
			continue
		}
		r := v1.ResourceHealth{ResourceID: id}
		var message string
		if r.Health, message = health(d.Driver, d.Pool, d.Name); message != "" {
			r.Message = &message
		}
		all[i].Resources = append(all[i].Resources, r)
	}
	return all
}
