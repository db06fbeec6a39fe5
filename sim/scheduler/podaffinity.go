package scheduler

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// hardAffinityWeight is the weight in scores of required affinity terms of other pods that
// select the pod.
const hardAffinityWeight = 1

// A podAffinity has the counts of pods by domain that the pod affinity filter and score need.
type podAffinity struct {
	terms      podTerms // of the pod
	affinity   counts   // pods that all required affinity terms select
	self       bool     // they select the pod itself
	anti       counts   // pods that one of the anti-affinity terms selects
	blocked    counts   // pods with an anti-affinity term that selects the pod
	preference counts   // sums of weights
}

// podAffinity computes the counts for a pod.
func (c *Cluster) podAffinity(pod *v1.Pod) podAffinity {
	out := podAffinity{
		terms: podTermsOf(pod), affinity: counts{}, anti: counts{}, blocked: counts{}, preference: counts{},
	}
	of := labels.Set(pod.Labels)
	out.self = c.selectsAll(out.terms.affinity, pod.Namespace, of)
	for _, g := range c.groups {
		if out.terms.empty() && g.terms.empty() {
			continue
		}
		namespace := g.key.namespace
		if len(out.terms.affinity) > 0 && c.selectsAll(out.terms.affinity, namespace, g.labels) {
			for i := range out.terms.affinity {
				out.affinity.add(g, out.terms.affinity[i].key, 1)
			}
		}
		for i := range out.terms.antiAffinity {
			if t := &out.terms.antiAffinity[i]; c.selects(t, namespace, g.labels) {
				out.anti.add(g, t.key, 1)
			}
		}
		for i := range out.terms.preferred {
			if t := &out.terms.preferred[i]; c.selects(t, namespace, g.labels) {
				out.preference.add(g, t.key, t.weight)
			}
		}
		for i := range g.terms.antiAffinity {
			if t := &g.terms.antiAffinity[i]; c.selects(t, pod.Namespace, of) {
				out.blocked.add(g, t.key, 1)
			}
		}
		for i := range g.terms.affinity {
			if t := &g.terms.affinity[i]; c.selects(t, pod.Namespace, of) {
				out.preference.add(g, t.key, hardAffinityWeight)
			}
		}
		for i := range g.terms.preferred {
			if t := &g.terms.preferred[i]; c.selects(t, pod.Namespace, of) {
				out.preference.add(g, t.key, t.weight)
			}
		}
	}
	return out
}

func (c *Cluster) selectsAll(terms []term, namespace string, of labels.Set) bool {
	for i := range terms {
		if !c.selects(&terms[i], namespace, of) {
			return false
		}
	}
	return true
}

func interPodAffinity(p *placement, n *node) []string {
	a := &p.pods
	found := true
	for i := range a.terms.affinity {
		value, ok := n.object.Labels[a.terms.affinity[i].key]
		if !ok {
			return []string{reasonPodAffinity}
		}
		found = found && a.affinity[a.terms.affinity[i].key][value] > 0
	}
	// The first pod of a group that is affine to itself may be placed anywhere.
	if !found && (len(a.affinity) > 0 || !a.self) {
		return []string{reasonPodAffinity}
	}
	for i := range a.terms.antiAffinity {
		key := a.terms.antiAffinity[i].key
		if value, ok := n.object.Labels[key]; ok && a.anti[key][value] > 0 {
			return []string{reasonAntiAffinity}
		}
	}
	if a.blocked.sum(n) > 0 {
		return []string{reasonExistingAnti}
	}
	return nil
}

// scorePodAffinity returns the sums of the weights of the terms that a node satisfies,
// relative to the lowest and the highest sum.
func scorePodAffinity(p *placement, feasible []*node) []int64 {
	if len(p.pods.preference) == 0 {
		return nil
	}
	scores := make([]int64, len(feasible))
	for i, n := range feasible {
		scores[i] = int64(p.pods.preference.sum(n))
	}
	least, most := scores[0], scores[0]
	for _, s := range scores {
		least, most = min(least, s), max(most, s)
	}
	for i := range scores {
		if most > least {
			scores[i] = maxScore * (scores[i] - least) / (most - least)
		} else {
			scores[i] = 0
		}
	}
	return scores
}
