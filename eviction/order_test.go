package eviction_test

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/eviction"
)

func TestPolicyOrderPrecedesTheKubeletsOrder(t *testing.T) {
	a, b, c := podOf("a"), podOf("b"), podOf("c")
	c.Labels = map[string]string{"evict": "first"}
	order := func(change func(*eviction.Inputs)) (names []string, decided []eviction.Comparator) {
		in := lowMemory(a, b, c)
		change(&in)
		for _, r := range in.Plan().Ranking {
			names, decided = append(names, r.Pod.Name), append(decided, r.Decided)
		}
		return names, decided
	}
	names, _ := order(func(*eviction.Inputs) {})
	assert.Equal(t, []string{"a", "b", "c"}, names)

	var signals []eviction.Signal
	byLabel := func(s eviction.Signal, x, y *eviction.Rank) int {
		signals = append(signals, s)
		return -cmp.Compare(x.Pod.Labels["evict"], y.Pod.Labels["evict"])
	}
	names, decided := order(func(in *eviction.Inputs) { in.Policy.Order = byLabel })
	assert.Equal(t, []string{"c", "a", "b"}, names, "zero leaves a pair to the kubelet's order")
	assert.Equal(t, []eviction.Comparator{eviction.ByPolicy, eviction.ByName, ""}, decided)
	assert.Contains(t, signals, eviction.MemoryAvailable)

	names, decided = order(func(in *eviction.Inputs) {
		in.Policy.Order = byLabel
		in.Spared = map[types.UID]eviction.Spare{c.UID: {Reason: "quorum"}}
	})
	assert.Equal(t, []string{"a", "b", "c"}, names, "spared pods are last")
	assert.Equal(t, eviction.BySpared, decided[1])

	in := lowMemory(a, c)
	in.Policy.Order = byLabel
	in.Policy.Critical = func(pod *v1.Pod) bool { return pod.Name == "c" }
	ranking := in.Plan().Ranking
	assert.Equal(t, "c", ranking[0].Pod.Name)
	assert.NotEmpty(t, ranking[0].Refused, "a critical pod is not evicted, whatever its place")
}
