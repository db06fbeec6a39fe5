package scheduler

import (
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// A spread is a topology spread constraint of a pod.
type spread struct {
	v1.TopologySpreadConstraint
	selector labels.Selector
	self     int            // 1 if the selector selects the pod itself
	counts   map[string]int // selected pods of each domain, by the value of the label
	least    int            // the lowest count; zero if there are fewer domains than minDomains
}

// spreads returns the constraints of the pod of one kind.
func (p *placement) spreads(when v1.UnsatisfiableConstraintAction) (out []spread) {
	for _, c := range p.pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != when {
			continue
		}
		s := spread{TopologySpreadConstraint: c, selector: selectorOf(c.LabelSelector)}
		s.selector = withLabelsOf(p.pod, s.selector, c.MatchLabelKeys, selection.In)
		if s.selector.Matches(labels.Set(p.pod.Labels)) {
			s.self = 1
		}
		out = append(out, s)
	}
	return out
}

// includes reports whether the pods of a node are counted: it has the labels of all
// constraints, and the pod could be placed on it according to the inclusion policies, which
// are Honor for node affinity and Ignore for taints if they are nil.
func (p *placement) includes(s *spread, all []spread, n *node) bool {
	if !hasDomains(all, n) {
		return false
	}
	if policy := s.NodeAffinityPolicy; (policy == nil || *policy == v1.NodeInclusionPolicyHonor) && !p.matchesAffinity(n) {
		return false
	}
	policy := s.NodeTaintsPolicy
	return policy == nil || *policy == v1.NodeInclusionPolicyIgnore || p.tolerates(n)
}

// hasDomains reports whether a node has the labels of all constraints.
func hasDomains(all []spread, n *node) bool {
	return !slices.ContainsFunc(all, func(s spread) bool {
		_, ok := n.object.Labels[s.TopologyKey]
		return !ok
	})
}

// selected returns the number of the pods of each node that the constraint selects. Pods
// that terminate are not counted.
func (p *placement) selected(s *spread) map[*node]int {
	out := map[*node]int{}
	for key, g := range p.cluster.groups {
		if key.namespace != p.pod.Namespace || key.terminating || !s.selector.Matches(g.labels) {
			continue
		}
		for n, pods := range g.on {
			out[n] += pods
		}
	}
	return out
}

// countHard counts the pods in the domains of the hard constraints.
func (p *placement) countHard() {
	for i := range p.hard {
		s := &p.hard[i]
		s.counts = map[string]int{}
		pods := p.selected(s)
		for _, n := range p.cluster.nodes {
			if p.includes(s, p.hard, n) {
				s.counts[n.object.Labels[s.TopologyKey]] += pods[n]
			}
		}
		s.least = math.MaxInt
		for _, count := range s.counts {
			s.least = min(s.least, count)
		}
		if s.MinDomains != nil && len(s.counts) < int(*s.MinDomains) {
			s.least = 0
		}
	}
}

func topologySpread(p *placement, n *node) []string {
	for i := range p.hard {
		s := &p.hard[i]
		value, ok := n.object.Labels[s.TopologyKey]
		if !ok {
			return []string{reasonSpreadLabel}
		}
		if s.counts[value]+s.self-s.least > int(s.MaxSkew) {
			return []string{reasonSpread}
		}
	}
	return nil
}

// scoreSpread returns high scores for nodes in domains with few selected pods of the soft
// constraints. Nodes without the labels have 0.
func scoreSpread(p *placement, feasible []*node) []int64 {
	if len(p.soft) == 0 {
		return nil
	}
	counts := make([]float64, len(feasible))
	for i := range p.soft {
		s := &p.soft[i]
		pods, perDomain := p.selected(s), map[string]int{}
		domains := map[string]bool{}
		for _, n := range feasible {
			if hasDomains(p.soft, n) {
				domains[n.object.Labels[s.TopologyKey]] = true
			}
		}
		for _, n := range p.cluster.nodes {
			if p.includes(s, p.soft, n) {
				perDomain[n.object.Labels[s.TopologyKey]] += pods[n]
			}
		}
		for j, n := range feasible {
			counts[j] += float64(perDomain[n.object.Labels[s.TopologyKey]])*math.Log(float64(len(domains)+2)) + float64(s.MaxSkew-1)
		}
	}
	scores := make([]int64, len(feasible))
	least, most := int64(math.MaxInt64), int64(0)
	for i, n := range feasible {
		if scores[i] = int64(math.Round(counts[i])); hasDomains(p.soft, n) {
			least, most = min(least, scores[i]), max(most, scores[i])
		}
	}
	for i, n := range feasible {
		switch {
		case !hasDomains(p.soft, n):
			scores[i] = 0
		case most == 0:
			scores[i] = maxScore
		default:
			scores[i] = maxScore * (most + least - scores[i]) / most
		}
	}
	return scores
}
