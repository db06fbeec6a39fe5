package scheduler

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// Place returns the name of the node for a pod: of the nodes that all filters accept, the
// one with the highest score; of equal ones the one with the fewest pods, then the first by
// name. It does not add the pod to the node; see [Cluster.SetPod]. The error is
// an [*Unschedulable].
func (c *Cluster) Place(pod *v1.Pod) (nodeName string, err error) {
	p := c.placement(pod)
	failure := &Unschedulable{Nodes: len(c.nodes)}
	var feasible []*node
	for _, n := range c.nodes {
		if reasons := p.filter(n); len(reasons) > 0 {
			failure.add(reasons)
		} else {
			feasible = append(feasible, n)
		}
	}
	switch len(feasible) {
	case 0:
		return "", failure
	case 1:
		return feasible[0].object.Name, nil
	}
	scores := p.scores(feasible)
	best := 0
	for i := range feasible {
		if cmp.Or(cmp.Compare(scores[i], scores[best]), cmp.Compare(feasible[best].pods, feasible[i].pods)) > 0 {
			best = i
		}
	}
	return feasible[best].object.Name, nil
}

// Compare orders pods as the queue of kube-scheduler does: a higher priority first, then the
// older pod, then by namespace and name.
func Compare(a, b *v1.Pod) int {
	return cmp.Or(
		cmp.Compare(podspec.Priority(b), podspec.Priority(a)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}

// A placement is a pod that is placed, with what is computed once for all nodes.
type placement struct {
	cluster  *Cluster
	pod      *v1.Pod
	demand   demand
	affinity *nodeaffinity.RequiredNodeAffinity // nil if every node matches
	hard     []spread
	soft     []spread
	pods     podAffinity
}

func (c *Cluster) placement(pod *v1.Pod) *placement {
	p := &placement{cluster: c, pod: pod, demand: demandOf(pod)}
	if len(pod.Spec.NodeSelector) > 0 || pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity != nil {
		required := nodeaffinity.GetRequiredNodeAffinity(pod)
		p.affinity = &required
	}
	p.hard, p.soft = p.spreads(v1.DoNotSchedule), p.spreads(v1.ScheduleAnyway)
	p.countHard()
	p.pods = c.podAffinity(pod)
	return p
}
