package dra

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// DynamicResources returns the prepared devices of a container by claim, for
// podresources.Config.Claims. It returns nil if the claims are not prepared, and does not
// block.
func (m *Manager) DynamicResources(pod *v1.Pod, c *v1.Container) []*podresourcesapi.DynamicResource {
	devices, ok, err := m.devices(pod, c)
	if err != nil || !ok {
		return nil
	}
	return dynamicResources(devices)
}

func dynamicResources(devices []usedDevice) []*podresourcesapi.DynamicResource {
	var all []*podresourcesapi.DynamicResource
	listed := map[usedDeviceKey]bool{}
	for _, d := range devices {
		key := usedDeviceKey{d.claim, d.driver, d.Pool, d.Name, d.ShareID}
		if listed[key] { // the container uses several requests that the device satisfies
			continue
		}
		listed[key] = true
		i := slices.IndexFunc(all, func(r *podresourcesapi.DynamicResource) bool {
			return r.ClaimName == d.claim.Name && r.ClaimNamespace == d.claim.Namespace
		})
		if i < 0 {
			all = append(all, &podresourcesapi.DynamicResource{ClaimName: d.claim.Name, ClaimNamespace: d.claim.Namespace})
			i = len(all) - 1
		}
		r := &podresourcesapi.ClaimResource{DriverName: d.driver, PoolName: d.Pool, DeviceName: d.Name}
		if d.ShareID != "" {
			r.ShareId = &d.ShareID
		}
		for _, name := range d.CDI {
			r.CdiDevices = append(r.CdiDevices, &podresourcesapi.CDIDevice{Name: name})
		}
		all[i].ClaimResources = append(all[i].ClaimResources, r)
	}
	return all
}

// A usedDeviceKey identifies a device of a container.
type usedDeviceKey struct {
	claim                       ClaimRef
	driver, pool, name, shareID string
}
