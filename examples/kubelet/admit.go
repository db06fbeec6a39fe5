package main

import (
	"math"
	goruntime "runtime"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// thisNode is what pods are held against: the name, the system, and what there
// is to give out, which is the machine without what is reserved.
func thisNode(name string, maxPods int32, allocatable v1.ResourceList) admission.Node {
	node := admission.Node{Name: name, OS: goruntime.GOOS, Labels: map[string]string{
		v1.LabelHostname: name, v1.LabelOSStable: goruntime.GOOS, v1.LabelArchStable: goruntime.GOARCH,
	}}
	quantity := func(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
	node.Allocatable = v1.ResourceList{
		v1.ResourceCPU:  quantity(int64(goruntime.NumCPU())),
		v1.ResourcePods: quantity(int64(maxPods)),
		// Nobody measures what pods have on disk, nor, where the machine does
		// not tell, its memory: there they get what they ask for.
		v1.ResourceEphemeralStorage: quantity(math.MaxInt64),
		v1.ResourceMemory:           quantity(math.MaxInt64),
	}
	for name, q := range allocatable {
		if name != v1.ResourceEphemeralStorage {
			node.Allocatable[name] = q
		}
	}
	return node
}

// admitters decide, in this order, whether a pod may run here. The managers come
// last because they allocate what they admit.
func (a *assembly) admitters(g ground) podworker.Admitters {
	return podworker.Admitters{g.evictions, g.rt, g.granted, g.leaving, g.rt.managers, admission.IgnoredFields(a.record)}
}

// checkDNS returns what is wrong with the machine's resolv.conf, if anything: pods
// run all the same (dn-9).
func checkDNS(dns cri.DNS) error {
	return dns.Check(cri.ReadResolvConf(dns))
}
