package scheduler

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// amounts are amounts of resources: milli-CPUs, bytes, or counts.
type amounts struct {
	cpu, memory, storage int64
	others               map[v1.ResourceName]int64
}

func amountsOf(list v1.ResourceList) amounts {
	a := amounts{cpu: list.Cpu().MilliValue(), memory: list.Memory().Value(), storage: list.StorageEphemeral().Value()}
	for name, q := range list {
		switch name {
		case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods:
			continue
		}
		if a.others == nil {
			a.others = map[v1.ResourceName]int64{}
		}
		a.others[name] = q.Value()
	}
	return a
}

// add adds b, or subtracts it if sign is -1.
func (a *amounts) add(b *amounts, sign int64) {
	a.cpu += sign * b.cpu
	a.memory += sign * b.memory
	a.storage += sign * b.storage
	for name, n := range b.others {
		if a.others == nil {
			a.others = map[v1.ResourceName]int64{}
		}
		a.others[name] += sign * n
	}
}

// A demand is what a pod occupies on its node.
type demand struct {
	requests amounts
	scored   amounts // requests, with defaults for containers without
	ports    []hostPort
}

// Requests that containers without requests have for scores, so that they are spread too.
var (
	defaultCPU    = apiresource.MustParse("100m")
	defaultMemory = apiresource.MustParse("200Mi")
)

func demandOf(pod *v1.Pod) demand {
	options := resource.PodResourcesOptions{UseStatusResources: true}
	d := demand{requests: amountsOf(resource.PodRequests(pod, options))}
	options.NonMissingContainerRequests = v1.ResourceList{v1.ResourceCPU: defaultCPU, v1.ResourceMemory: defaultMemory}
	d.scored = amountsOf(resource.PodRequests(pod, options))
	for i := range pod.Spec.Containers {
		d.addPorts(&pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; podspec.IsSidecar(c) {
			d.addPorts(c)
		}
	}
	return d
}

// A hostPort is a port of the node. An empty ip means all addresses.
type hostPort struct {
	ip       string
	protocol v1.Protocol
	port     int32
}

func (d *demand) addPorts(c *v1.Container) {
	for _, p := range c.Ports {
		if p.HostPort <= 0 {
			continue
		}
		at := hostPort{p.HostIP, p.Protocol, p.HostPort}
		if at.protocol == "" {
			at.protocol = v1.ProtocolTCP
		}
		if at.ip == "0.0.0.0" || at.ip == "::" {
			at.ip = ""
		}
		d.ports = append(d.ports, at)
	}
}

// conflicts reports whether a port is occupied. Ports conflict if the protocols are equal,
// and the addresses are equal or one is unspecified.
func (n *node) conflicts(ports []hostPort) bool {
	for _, p := range ports {
		for used := range n.ports {
			if p.port == used.port && p.protocol == used.protocol && (p.ip == used.ip || p.ip == "" || used.ip == "") {
				return true
			}
		}
	}
	return false
}
