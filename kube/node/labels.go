package node

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// nodeLabels are the labels of the domains kubernetes.io and k8s.io that a node may set, in
// addition to those below nodeDomains.
var (
	nodeLabels = []string{
		v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion,
		v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
		v1.LabelInstanceTypeStable, v1.LabelInstanceType, v1.LabelOSStable, v1.LabelArchStable,
		betaOS, betaArch,
	}
	nodeDomains = []string{"kubelet.kubernetes.io", "node.kubernetes.io"}
)

// ParseLabels parses "key=value,key=value", as in the kubelet's flag --node-labels. It
// returns an error for a label that a node must not set.
func ParseLabels(s string) (map[string]string, error) {
	labels := map[string]string{}
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("node: label %q: want key=value", part)
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
			return nil, fmt.Errorf("node: label %q: %s", part, strings.Join(problems, "; "))
		}
		if !mayLabel(key) {
			return nil, fmt.Errorf("node: label %q: of kubernetes.io and k8s.io, a node may set only those below %s, and %s",
				key, strings.Join(nodeDomains, " and "), strings.Join(nodeLabels, ", "))
		}
		labels[key] = value
	}
	return labels, nil
}

func mayLabel(key string) bool {
	domain, _, qualified := strings.Cut(key, "/")
	if !qualified || slices.Contains(nodeLabels, key) {
		return true
	}
	below := func(of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) }
	return slices.ContainsFunc(nodeDomains, below) || !below("kubernetes.io") && !below("k8s.io")
}

// ParseTaints parses "key=value:effect,key:effect", as in the kubelet's flag
// --register-with-taints.
func ParseTaints(s string) ([]v1.Taint, error) {
	var taints []v1.Taint
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		keyValue, effect, ok := strings.Cut(part, ":")
		key, value, _ := strings.Cut(keyValue, "=")
		t := v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)}
		problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		if !ok || !slices.Contains([]v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}, t.Effect) {
			problems = append(problems, "the effect must be NoSchedule, PreferNoSchedule or NoExecute")
		}
		if slices.ContainsFunc(taints, func(o v1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }) {
			problems = append(problems, "duplicate taint")
		}
		if len(problems) > 0 {
			return nil, fmt.Errorf("node: taint %q: want key=value:effect: %s", part, strings.Join(problems, "; "))
		}
		taints = append(taints, t)
	}
	return taints, nil
}
