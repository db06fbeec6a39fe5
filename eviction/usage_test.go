package eviction_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/eviction"
)

// A summary without the memory of a pod is used with that of its containers; without both the ranking
// reports that the usage is unknown. It does not make the pod exempt.
func TestAPodWithoutMemoryStatisticsIsRankedByItsContainers(t *testing.T) {
	large, small, unknown := podOf("hog"), podOf("small"), podOf("a-pod-without-any")
	for _, pod := range []*v1.Pod{large, small, unknown} {
		pod.Spec.Containers = []v1.Container{{Name: "a"}, {Name: "b"}}
	}
	in := lowMemory(unknown, small, large)
	used := func(name, memory string) statsapi.ContainerStats {
		return statsapi.ContainerStats{Name: name, Memory: &statsapi.MemoryStats{WorkingSetBytes: bytesOf(memory)}}
	}
	in.Summary.Pods[0].Memory = nil
	in.Summary.Pods[0].Containers = []statsapi.ContainerStats{{Name: "a"}, {Name: "b", Memory: new(statsapi.MemoryStats)}}
	in.Summary.Pods[2].Memory = nil
	in.Summary.Pods[2].Containers = []statsapi.ContainerStats{used("a", "200Mi"), used("b", "150Mi")}
	ranking := in.Plan().Ranking
	var names []string
	for _, c := range ranking {
		names = append(names, c.Pod.Name)
	}
	assert.Equal(t, []string{"hog", "small", "a-pod-without-any"}, names)
	assert.EqualValues(t, 350<<20, ranking[0].Usage)
	assert.False(t, ranking[0].Unmeasured)
	assert.False(t, ranking[1].Unmeasured)
	assert.True(t, ranking[2].Unmeasured)
	assert.Empty(t, ranking[2].Exempt)

	in.Policy.Thresholds = []eviction.Threshold{{Signal: "memory.available", Value: eviction.Value{Quantity: new(resource.MustParse("200Mi"))}}}
	in.Partial = true
	ranking = in.Plan().Ranking
	assert.False(t, ranking[0].Unmeasured, "the containers suffice")
	assert.NotEmpty(t, ranking[2].Exempt)
}

// The other resources that a summary may lack are reported as well.
func TestMissingStatisticsAreReported(t *testing.T) {
	pod := podOf("web")
	for signal, measured := range map[eviction.Signal]func(*statsapi.PodStats){
		eviction.PIDAvailable:    func(s *statsapi.PodStats) { s.ProcessStats = &statsapi.ProcessStats{ProcessCount: bytesOf("1")} },
		eviction.NodeFSAvailable: func(s *statsapi.PodStats) { s.Containers = []statsapi.ContainerStats{{Logs: diskStats("1")}} },
	} {
		in := lowMemory(pod)
		in.Policy.Thresholds = []eviction.Threshold{{Signal: signal, Value: eviction.Value{Quantity: new(resource.MustParse("1000"))}}}
		capacity, available := bytesOf("10000"), bytesOf("100")
		in.Summary.Node.Fs = &statsapi.FsStats{CapacityBytes: capacity, AvailableBytes: available}
		most, running := int64(10000), int64(9900)
		in.Summary.Node.Rlimit = &statsapi.RlimitStats{MaxPID: &most, NumOfRunningProcesses: &running}
		if ranking := in.Plan().Ranking; assert.Len(t, ranking, 1, signal) {
			assert.True(t, ranking[0].Unmeasured, signal)
		}
		measured(&in.Summary.Pods[0])
		assert.False(t, in.Plan().Ranking[0].Unmeasured, signal)
	}
}
