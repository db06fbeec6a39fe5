package admission_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/runtime"
)

// prioritized returns a pod of an API server with that priority and memory request.
func prioritized(name string, priority int32, memory string) *v1.Pod {
	p := pod(name, false, "memory", memory)
	p.Annotations = map[string]string{runtime.ConfigSourceAnnotation: "api"}
	p.Spec.Priority = &priority
	return p
}

func TestForNode(t *testing.T) { // adm-10 … adm-12, sl-19, sl-23
	critical := func(name string, priority int32, memory string) *v1.Pod { // a static pod
		return with(prioritized(name, priority, memory), func(p *v1.Pod) { p.Annotations[runtime.ConfigSourceAnnotation] = "file" })
	}
	low, small := critical("low", 1, "3Gi"), critical("small", 1, "100Mi")
	recorded := with(critical("low", 1, "3Gi"), func(p *v1.Pod) { p.Annotations = nil })
	elsewhere := with(critical("vital", 1000, "2Gi"), func(p *v1.Pod) { p.Spec.NodeName = "elsewhere" })
	leaving, web := prioritized("leaving", 0, "3Gi"), prioritized("web", 0, "2Gi")

	for name, tc := range map[string]struct {
		resize  bool
		pod     *v1.Pod
		others  []*v1.Pod
		reason  string
		preempt []types.UID
	}{
		"it fits":                                 {pod: prioritized("new", 0, "4Gi")},
		"it does not fit":                         {pod: prioritized("new", 0, "5Gi"), reason: "OutOfmemory"},
		"the fewest pods are preempted":           {pod: critical("vital", 1000, "2Gi"), others: []*v1.Pod{low, small}, reason: "OutOfmemory", preempt: []types.UID{"low"}},
		"only pods of lower priority":             {pod: critical("vital", 0, "2Gi"), others: []*v1.Pod{low}, reason: "UnexpectedAdmissionError"},
		"no pod of unknown priority":              {pod: critical("vital", 1000, "2Gi"), others: []*v1.Pod{recorded}, reason: "UnexpectedAdmissionError"},
		"none if more than resources are missing": {pod: elsewhere, others: []*v1.Pod{low}, reason: "OutOfmemory"},
		"a resize preempts no pod":                {resize: true, pod: critical("vital", 1000, "2Gi"), others: []*v1.Pod{low}, reason: "OutOfmemory"},
		"a resize is checked for resources only":  {resize: true, pod: elsewhere},
		"it waits for a terminating pod":          {pod: prioritized("new", 0, "2Gi"), others: []*v1.Pod{leaving}, reason: "OutOfmemory", preempt: []types.UID{"leaving"}},
		"both fit":                                {pod: prioritized("new", 0, "1Gi"), others: []*v1.Pod{leaving}},
		"it would not fit after the termination":  {pod: prioritized("new", 0, "3Gi"), others: []*v1.Pod{leaving, web}, reason: "OutOfmemory"},
		"a critical pod waits, too":               {pod: prioritized("new", 2_000_000_000, "2Gi"), others: []*v1.Pod{leaving, web}, reason: "OutOfmemory", preempt: []types.UID{"leaving"}},
	} {
		t.Run(name, func(t *testing.T) {
			ask := admission.ForNode(func() admission.Node {
				return admission.Node{Name: "node", Allocatable: v1.ResourceList{v1.ResourceMemory: resource.MustParse("4Gi")}}
			}, func(uid types.UID) bool { return uid == "leaving" })
			got := ask(t.Context(), allocation.Request{Resize: tc.resize, Pod: tc.pod, Others: tc.others})
			if tc.reason == "" {
				require.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			assert.Equal(t, tc.reason, got.Reason)
			assert.Equal(t, tc.preempt, got.Preempt)
			if tc.reason == "UnexpectedAdmissionError" {
				require.ErrorIs(t, got, admission.ErrNoVictims)
				assert.Equal(t, "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: "+
					"no set of running pods found to reclaim resources: [(res: memory, q: 1073741824), ]", got.Message)
			}
		})
	}
}

func TestPodsThatNoNodeCanRun(t *testing.T) {
	p := pod("a", false)
	require.Empty(t, admission.Check(p, nil, admission.Node{}))
	p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("gpu")}}
	require.Empty(t, admission.Check(p, nil, admission.Node{ResourceClaims: true}))
	p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, nil
	failures := admission.Check(p, nil, admission.Node{})
	require.Len(t, failures, 2)
	assert.Equal(t, runtime.Rejection{Reason: "NoContainers", Message: "Pod has no containers: there is nothing to run"}, failures[0].Rejection)
	assert.Equal(t, runtime.Rejection{Reason: "UnexpectedAdmissionError", Message: "resource claims (dynamic resource allocation) are not supported"}, failures[1].Rejection)
}
