package scheduler

import (
	"slices"

	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// maxScore is the highest score of a node for one criterion.
const maxScore = 100

// criteria are the scores of the default profile of kube-scheduler with their weights,
// without ImageLocality. A score of nil is the same for all nodes.
var criteria = []struct {
	weight int64
	score  func(p *placement, feasible []*node) []int64
}{
	{3, scoreTaints}, {2, scoreNodeAffinity}, {1, scoreLeastAllocated}, {2, scoreSpread}, {2, scorePodAffinity}, {1, scoreBalance},
}

// scores returns the weighted sum of the scores of each node.
func (p *placement) scores(feasible []*node) []int64 {
	sum := make([]int64, len(feasible))
	for _, c := range criteria {
		for i, s := range c.score(p, feasible) {
			sum[i] += c.weight * s
		}
	}
	return sum
}

// scoreTaints prefers nodes with few taints of effect PreferNoSchedule that the pod does not
// tolerate.
func scoreTaints(p *placement, feasible []*node) []int64 {
	scores := make([]int64, len(feasible))
	for i, n := range feasible {
		for _, t := range n.softTaints {
			if !podspec.Tolerates(p.pod, t) {
				scores[i]++
			}
		}
	}
	most := slices.Max(scores)
	if most == 0 {
		return nil
	}
	for i := range scores {
		scores[i] = maxScore - maxScore*scores[i]/most
	}
	return scores
}

// scoreNodeAffinity prefers nodes with a high sum of the weights of preferred terms.
func scoreNodeAffinity(p *placement, feasible []*node) []int64 {
	a := p.pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		return nil
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		return nil
	}
	scores := make([]int64, len(feasible))
	for i, n := range feasible {
		scores[i] = terms.Score(n.object)
	}
	most := slices.Max(scores)
	if most == 0 {
		return nil
	}
	for i := range scores {
		scores[i] = maxScore * scores[i] / most
	}
	return scores
}

// scoreLeastAllocated prefers nodes with a large free part of CPU and memory.
func scoreLeastAllocated(p *placement, feasible []*node) []int64 {
	scores := make([]int64, len(feasible))
	for i, n := range feasible {
		scores[i] = leastAllocated(
			n.scored.cpu+p.demand.scored.cpu, n.allocatable.cpu,
			n.scored.memory+p.demand.scored.memory, n.allocatable.memory,
		)
	}
	return scores
}

// leastAllocated returns the mean of the free parts of the resources that the node has.
func leastAllocated(cpu, ofCPU, memory, ofMemory int64) int64 {
	var sum, resources int64
	for _, r := range [][2]int64{{cpu, ofCPU}, {memory, ofMemory}} {
		if r[1] == 0 {
			continue
		}
		resources++
		if r[0] <= r[1] {
			sum += maxScore * (r[1] - r[0]) / r[1]
		}
	}
	if resources == 0 {
		return 0
	}
	return sum / resources
}

// scoreBalance prefers nodes whose used parts of CPU and memory become more equal by the
// pod. Pods without requests have no preference.
func scoreBalance(p *placement, feasible []*node) []int64 {
	r := &p.demand.requests
	if r.cpu == 0 && r.memory == 0 {
		return nil
	}
	scores := make([]int64, len(feasible))
	for i, n := range feasible {
		after := balance(n.used.cpu+r.cpu, n.allocatable.cpu, n.used.memory+r.memory, n.allocatable.memory)
		before := balance(n.used.cpu, n.allocatable.cpu, n.used.memory, n.allocatable.memory)
		scores[i] = maxScore/2 + (maxScore/2+after-before)/2
	}
	return scores
}

// balance returns maxScore if the used parts of CPU and memory are equal, and half of it if
// one is used completely and the other is not used.
func balance(cpu, ofCPU, memory, ofMemory int64) int64 {
	if ofCPU == 0 || ofMemory == 0 {
		return maxScore
	}
	parts := [2]float64{min(float64(cpu)/float64(ofCPU), 1), min(float64(memory)/float64(ofMemory), 1)}
	deviation := max(parts[0]-parts[1], parts[1]-parts[0]) / 2
	return int64((1 - deviation) * maxScore)
}
