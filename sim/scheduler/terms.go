package scheduler

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// podTerms are the terms of the pod affinity and anti-affinity of a pod.
type podTerms struct {
	affinity, antiAffinity []term // required
	preferred              []term // of both; the weight of anti-affinity is negative
}

// A term selects pods in a topology domain.
type term struct {
	key        string // of the topology
	namespaces []string
	inSpaces   labels.Selector // selects further namespaces
	pods       labels.Selector
	weight     int
}

func hasPodTerms(pod *v1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil)
}

func (t *podTerms) empty() bool {
	return len(t.affinity) == 0 && len(t.antiAffinity) == 0 && len(t.preferred) == 0
}

func podTermsOf(pod *v1.Pod) (out podTerms) {
	if !hasPodTerms(pod) {
		return out
	}
	if a := pod.Spec.Affinity.PodAffinity; a != nil {
		out.affinity = termsOf(pod, a.RequiredDuringSchedulingIgnoredDuringExecution)
		for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
			t := &a.PreferredDuringSchedulingIgnoredDuringExecution[i]
			out.preferred = append(out.preferred, termOf(pod, &t.PodAffinityTerm, int(t.Weight)))
		}
	}
	if a := pod.Spec.Affinity.PodAntiAffinity; a != nil {
		out.antiAffinity = termsOf(pod, a.RequiredDuringSchedulingIgnoredDuringExecution)
		for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
			t := &a.PreferredDuringSchedulingIgnoredDuringExecution[i]
			out.preferred = append(out.preferred, termOf(pod, &t.PodAffinityTerm, -int(t.Weight)))
		}
	}
	return out
}

func termsOf(pod *v1.Pod, list []v1.PodAffinityTerm) (out []term) {
	for i := range list {
		out = append(out, termOf(pod, &list[i], 0))
	}
	return out
}

func termOf(pod *v1.Pod, t *v1.PodAffinityTerm, weight int) term {
	out := term{
		key: t.TopologyKey, namespaces: t.Namespaces, weight: weight,
		inSpaces: selectorOf(t.NamespaceSelector), pods: selectorOf(t.LabelSelector),
	}
	if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
		out.namespaces = []string{pod.Namespace}
	}
	if t.LabelSelector != nil {
		out.pods = withLabelsOf(pod, out.pods, t.MatchLabelKeys, selection.In)
		out.pods = withLabelsOf(pod, out.pods, t.MismatchLabelKeys, selection.NotIn)
	}
	return out
}

// selectorOf returns a selector. Nil, and one that cannot be parsed, select nothing.
func selectorOf(s *metav1.LabelSelector) labels.Selector {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}

// withLabelsOf adds requirements about the labels of the pod to a selector.
func withLabelsOf(pod *v1.Pod, to labels.Selector, keys []string, op selection.Operator) labels.Selector {
	for _, key := range keys {
		value, ok := pod.Labels[key]
		if !ok {
			continue
		}
		if r, err := labels.NewRequirement(key, op, []string{value}); err == nil {
			to = to.Add(*r)
		}
	}
	return to
}

// selects reports whether the term selects the pods with labels in a namespace.
func (c *Cluster) selects(t *term, namespace string, of labels.Set) bool {
	return t.pods.Matches(of) && (slices.Contains(t.namespaces, namespace) || t.inSpaces.Matches(c.namespaceLabels(namespace)))
}
