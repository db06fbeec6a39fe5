package scheduler

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A groupKey identifies the pods of a group.
type groupKey struct {
	namespace, labels, affinity string
	terminating                 bool
}

// A group is a set of pods that selectors and affinity terms cannot distinguish, such as the
// replicas of a ReplicaSet. Selectors are evaluated once for each group.
type group struct {
	key    groupKey
	labels labels.Set
	terms  podTerms // of the pods
	on     map[*node]int
}

// group returns the group of a pod.
func (c *Cluster) group(pod *v1.Pod) *group {
	key := groupKey{namespace: pod.Namespace, labels: labelKey(pod.Labels), terminating: pod.DeletionTimestamp != nil}
	if hasPodTerms(pod) {
		key.affinity = pod.Spec.Affinity.String()
	}
	g := c.groups[key]
	if g == nil {
		g = &group{key: key, labels: maps.Clone(pod.Labels), terms: podTermsOf(pod), on: map[*node]int{}}
		c.groups[key] = g
	}
	return g
}

// labelKey returns a text that is unique for a set of labels.
func labelKey(of map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(of)) {
		b.WriteString(name)
		b.WriteByte('=')
		b.WriteString(of[name])
		b.WriteByte(',')
	}
	return b.String()
}

// counts are numbers of topology domains, which are the nodes with a value of a label: by
// key, then by value.
type counts map[string]map[string]int

// add adds the number of the pods of a group in each domain of a topology key.
func (c counts) add(g *group, key string, weight int) {
	of := c[key]
	for n, pods := range g.on {
		if n.object == nil {
			continue
		}
		value, ok := n.object.Labels[key]
		if !ok {
			continue
		}
		if of == nil {
			of = map[string]int{}
			c[key] = of
		}
		of[value] += pods * weight
	}
}

// sum returns the sum over the domains of a node.
func (c counts) sum(n *node) (sum int) {
	for key, of := range c {
		if value, ok := n.object.Labels[key]; ok {
			sum += of[value]
		}
	}
	return sum
}
