package scheduler

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// The reasons of kube-scheduler for which a node is not feasible.
const (
	reasonUnschedulable = "node(s) were unschedulable"
	reasonName          = "node(s) didn't match the requested node name"
	reasonTaint         = "node(s) had untolerated taint(s)"
	reasonAffinity      = "node(s) didn't match Pod's node affinity/selector"
	reasonPorts         = "node(s) didn't have free ports for the requested pod ports"
	reasonTooMany       = "Too many pods"
	reasonSpread        = "node(s) didn't match pod topology spread constraints"
	reasonSpreadLabel   = "node(s) didn't match pod topology spread constraints (missing required label)"
	reasonPodAffinity   = "node(s) didn't match pod affinity rules"
	reasonAntiAffinity  = "node(s) didn't match pod anti-affinity rules"
	reasonExistingAnti  = "node(s) didn't satisfy existing pods anti-affinity rules"
)

// filters are the filters of the default profile of kube-scheduler, in its order, without
// those of volumes and of dynamic resource allocation.
var filters = []func(p *placement, n *node) []string{
	unschedulable, nodeName, taints, nodeAffinity, ports, resources, topologySpread, interPodAffinity,
}

// filter returns the reasons of the first filter that rejects the node; nil if none does.
func (p *placement) filter(n *node) []string {
	for _, filter := range filters {
		if reasons := filter(p, n); len(reasons) > 0 {
			return reasons
		}
	}
	return nil
}

var unschedulableTaint = v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}

func unschedulable(p *placement, n *node) []string {
	if n.object.Spec.Unschedulable && !podspec.Tolerates(p.pod, unschedulableTaint) {
		return []string{reasonUnschedulable}
	}
	return nil
}

func nodeName(p *placement, n *node) []string {
	if p.pod.Spec.NodeName != "" && p.pod.Spec.NodeName != n.object.Name {
		return []string{reasonName}
	}
	return nil
}

func taints(p *placement, n *node) []string {
	if p.tolerates(n) {
		return nil
	}
	return []string{reasonTaint}
}

// tolerates reports whether the pod tolerates the taints NoSchedule and NoExecute.
func (p *placement) tolerates(n *node) bool {
	for _, taint := range n.taints {
		if !podspec.Tolerates(p.pod, taint) {
			return false
		}
	}
	return true
}

func nodeAffinity(p *placement, n *node) []string {
	if p.matchesAffinity(n) {
		return nil
	}
	return []string{reasonAffinity}
}

// matchesAffinity reports whether the node matches the node selector and the required node
// affinity. An affinity that cannot be parsed matches no node.
func (p *placement) matchesAffinity(n *node) bool {
	if p.affinity == nil {
		return true
	}
	ok, err := p.affinity.Match(n.object)
	return ok && err == nil
}

func ports(p *placement, n *node) []string {
	if n.conflicts(p.demand.ports) {
		return []string{reasonPorts}
	}
	return nil
}

func resources(p *placement, n *node) (reasons []string) {
	if n.pods+1 > n.maxPods {
		reasons = append(reasons, reasonTooMany)
	}
	insufficient := func(name v1.ResourceName, requested, used, allocatable int64) {
		if requested > 0 && requested > allocatable-used {
			reasons = append(reasons, fmt.Sprintf("Insufficient %s", name))
		}
	}
	r := &p.demand.requests
	insufficient(v1.ResourceCPU, r.cpu, n.used.cpu, n.allocatable.cpu)
	insufficient(v1.ResourceMemory, r.memory, n.used.memory, n.allocatable.memory)
	insufficient(v1.ResourceEphemeralStorage, r.storage, n.used.storage, n.allocatable.storage)
	if len(r.others) > 0 {
		for _, name := range slices.Sorted(maps.Keys(r.others)) {
			insufficient(name, r.others[name], n.used.others[name], n.allocatable.others[name])
		}
	}
	return reasons
}
