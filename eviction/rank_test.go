package eviction_test

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/eviction"
)

func TestRankPrecedesTheDefaultRank(t *testing.T) {
	a, b, c := podOf("a"), podOf("b"), podOf("c")
	c.Labels = map[string]string{"evict": "first"}
	order := func(change func(*eviction.Inputs)) (names, reasons []string) {
		in := lowMemory(a, b, c)
		change(&in)
		for _, r := range in.Plan().Ranking {
			names, reasons = append(names, r.Pod.Name), append(reasons, r.RankReason)
		}
		return names, reasons
	}
	names, _ := order(func(*eviction.Inputs) {})
	assert.Equal(t, []string{"a", "b", "c"}, names)

	var signals []eviction.Signal
	reason := "label"
	byLabel := func(s eviction.Signal, x, y *eviction.Candidate) (int, string) {
		signals = append(signals, s)
		return -cmp.Compare(x.Pod.Labels["evict"], y.Pod.Labels["evict"]), reason
	}
	names, reasons := order(func(in *eviction.Inputs) { in.Policy.Rank = byLabel })
	assert.Equal(t, []string{"c", "a", "b"}, names, "zero leaves a pair to the default rank")
	assert.Equal(t, []string{"label", "name", ""}, reasons)
	assert.Contains(t, signals, eviction.MemoryAvailable)

	reason = ""
	_, reasons = order(func(in *eviction.Inputs) { in.Policy.Rank = byLabel })
	assert.Equal(t, []string{"custom rank", "name", ""}, reasons)
	reason = "label"

	names, reasons = order(func(in *eviction.Inputs) {
		in.Policy.Rank = byLabel
		in.Policy.Spare = sparing(map[types.UID]spare{c.UID: {Reason: "quorum"}})
	})
	assert.Equal(t, []string{"a", "b", "c"}, names, "spared pods are last")
	assert.Equal(t, "spared", reasons[1])

	in := lowMemory(a, c)
	in.Policy.Rank = byLabel
	in.Policy.Critical = func(pod *v1.Pod) bool { return pod.Name == "c" }
	plan := in.Plan()
	assert.Equal(t, "c", plan.Ranking[0].Pod.Name)
	assert.NotEmpty(t, plan.Ranking[0].Exempt, "a critical pod is not evicted, whatever its place")
	assert.Equal(t, "a", plan.Victim(1).Explanation.Victim.Name)
	assert.Equal(t, "label", plan.Victim(0).Explanation.RankReason)
}
