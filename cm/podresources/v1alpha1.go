package podresources

import (
	"context"

	alpha "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
)

// A v1alpha1Server implements the first version of the API, which a kubelet still serves on the
// same socket. It has only the devices of containers.
type v1alpha1Server struct {
	alpha.UnimplementedPodResourcesListerServer
	s *Server
}

func (a v1alpha1Server) List(context.Context, *alpha.ListPodResourcesRequest) (*alpha.ListPodResourcesResponse, error) {
	out := &alpha.ListPodResourcesResponse{}
	for _, pod := range a.s.cfg.Pods.Running() {
		of := a.s.pod(pod)
		to := &alpha.PodResources{Name: of.Name, Namespace: of.Namespace}
		for _, c := range of.Containers {
			container := &alpha.ContainerResources{Name: c.Name}
			for _, d := range c.Devices { // sorted by name; here without NUMA nodes
				if last := len(container.Devices) - 1; last >= 0 && container.Devices[last].ResourceName == d.ResourceName {
					container.Devices[last].DeviceIds = append(container.Devices[last].DeviceIds, d.DeviceIds...)
					continue
				}
				container.Devices = append(container.Devices, &alpha.ContainerDevices{ResourceName: d.ResourceName, DeviceIds: d.DeviceIds})
			}
			to.Containers = append(to.Containers, container)
		}
		out.PodResources = append(out.PodResources, to)
	}
	return out, nil
}
