package podresources

import (
	"slices"

	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kubeparts/kubeparts/cm/dra"
)

// dynamicResources returns the devices of a container by claim, each once.
func dynamicResources(devices []dra.UsedDevice) []*api.DynamicResource {
	var all []*api.DynamicResource
	listed := map[usedDeviceKey]bool{}
	for _, d := range devices {
		key := usedDeviceKey{d.Claim, d.Driver, d.Pool, d.Name, d.ShareID}
		if listed[key] { // the container uses several requests that the device satisfies
			continue
		}
		listed[key] = true
		i := slices.IndexFunc(all, func(r *api.DynamicResource) bool {
			return r.ClaimName == d.Claim.Name && r.ClaimNamespace == d.Claim.Namespace
		})
		if i < 0 {
			all = append(all, &api.DynamicResource{ClaimName: d.Claim.Name, ClaimNamespace: d.Claim.Namespace})
			i = len(all) - 1
		}
		r := &api.ClaimResource{DriverName: d.Driver, PoolName: d.Pool, DeviceName: d.Name}
		if d.ShareID != "" {
			r.ShareId = &d.ShareID
		}
		for _, name := range d.CDI {
			r.CdiDevices = append(r.CdiDevices, &api.CDIDevice{Name: name})
		}
		all[i].ClaimResources = append(all[i].ClaimResources, r)
	}
	return all
}

// A usedDeviceKey identifies a device of a container.
type usedDeviceKey struct {
	claim                       dra.ClaimRef
	driver, pool, name, shareID string
}
