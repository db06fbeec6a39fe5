package admission_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

func priority(n int32) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Priority = new(n) } }

func static(p *v1.Pod) { p.Annotations = map[string]string{runtime.ConfigSourceAnnotation: "file"} }

func TestPreemptedPods(t *testing.T) { // adm-10, adm-11
	plain, low, high := pod("plain", false), with(pod("low", false), priority(1)), with(pod("high", false), priority(2))
	critical := with(pod("critical", false), priority(2_000_000_000))
	manifest := with(pod("static", false), static)
	mirror := with(pod("mirror", false), func(p *v1.Pod) { p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"} })
	assert.True(t, podspec.IsCritical(critical))
	assert.True(t, podspec.IsCritical(manifest))
	assert.True(t, podspec.IsCritical(mirror))
	assert.False(t, podspec.IsCritical(high))
	assert.False(t, podspec.IsCritical(plain))

	assert.True(t, admission.Preemptable(critical, high))
	assert.True(t, admission.Preemptable(manifest, plain))
	assert.False(t, admission.Preemptable(manifest, critical), "both are critical, and one has no priority")
	assert.True(t, admission.Preemptable(high, low))
	assert.False(t, admission.Preemptable(low, high))
	assert.False(t, admission.Preemptable(high, plain), "it has no priority to compare with")
}

func TestTheNearestGoesByWhatIsStillMissing(t *testing.T) { // ev-61
	critical := with(pod("new", true, "cpu", "4", "memory", "4Gi"), static)
	lacks := []admission.Failure{
		{InsufficientResource: &admission.InsufficientResource{Resource: v1.ResourceCPU, Requested: 4000, Capacity: 0}},
		{InsufficientResource: &admission.InsufficientResource{Resource: v1.ResourceMemory, Requested: 4 << 30, Capacity: 0}},
	}
	// After the first victim CPU has the largest relative deficit: the next
	// victim is the pod that has it, although the other one has more memory.
	first := pod("first", false, "cpu", "3900m", "memory", "1Gi")
	cpu := pod("cpu", false, "cpu", "100m", "memory", "1Gi")
	memory := pod("memory", false, "memory", "2Gi")
	rest := pod("rest", false, "memory", "3Gi")
	got, err := admission.Victims(critical, []*v1.Pod{memory, rest, cpu, first}, lacks)
	require.NoError(t, err)
	var names []string
	for _, p := range got {
		names = append(names, string(p.UID))
	}
	assert.Equal(t, []string{"first", "cpu", "memory"}, names)

	// That may be more pods than needed: three quarters of both resources are nearer
	// than all of one, but two pods with all of one each would do.
	most, allCPU, allMemory := pod("most", false, "cpu", "3", "memory", "3Gi"), pod("all-cpu", false, "cpu", "4"), pod("all-memory", false, "memory", "4Gi")
	got, err = admission.Victims(critical, []*v1.Pod{allCPU, allMemory, most}, lacks)
	require.NoError(t, err)
	assert.Len(t, got, 3)

	// Of two that do as well, the one with less memory goes, then the one with less CPU.
	lacks = lacks[:1]
	much, little := pod("much", false, "cpu", "5", "memory", "2Gi"), pod("little", false, "cpu", "6", "memory", "1Gi")
	got, err = admission.Victims(critical, []*v1.Pod{much, little}, lacks)
	require.NoError(t, err)
	assert.Equal(t, little, got[0])
	less := pod("less", false, "cpu", "5", "memory", "1Gi")
	got, err = admission.Victims(critical, []*v1.Pod{much, little, less}, lacks)
	require.NoError(t, err)
	assert.Equal(t, less, got[0])
}

func TestVictimsAreFewAndTheLeastGuaranteed(t *testing.T) { // adm-10, ev-60, ev-61
	node := admission.Node{Allocatable: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("4Gi"), v1.ResourcePods: resource.MustParse("4"),
	}}
	guaranteed := pod("guaranteed", true, "cpu", "1", "memory", "1Gi")
	large, small := pod("large", false, "cpu", "2"), pod("small", false, "cpu", "500m")
	best := pod("best", false)
	system := with(pod("system", false, "cpu", "500m"), priority(2_000_000_001))
	names := func(pods []*v1.Pod) (uids []string) {
		for _, p := range pods {
			uids = append(uids, string(p.UID))
		}
		return uids
	}
	for name, tc := range map[string]struct {
		others []*v1.Pod
		pod    *v1.Pod
		want   []string
	}{
		"the smallest that does":                     {[]*v1.Pod{guaranteed, large, small, system}, pod("new", true, "cpu", "500m", "memory", "1Mi"), []string{"small"}},
		"the one that does, though it is larger":     {[]*v1.Pod{guaranteed, large, small}, pod("new", true, "cpu", "2", "memory", "1Mi"), []string{"large"}},
		"both of the burstable before a guaranteed":  {[]*v1.Pod{guaranteed, large, small, system}, pod("new", true, "cpu", "2500m", "memory", "1Mi"), []string{"large", "small"}},
		"a guaranteed one, if it has to be":          {[]*v1.Pod{guaranteed, large, small}, pod("new", true, "cpu", "4", "memory", "1Mi"), []string{"guaranteed", "large", "small"}},
		"a best-effort one, for the number of pods":  {[]*v1.Pod{guaranteed, small, best, system}, pod("new", true, "cpu", "100m", "memory", "1Mi"), []string{"best"}},
		"none, if nothing is missing":                {[]*v1.Pod{guaranteed}, pod("new", true, "cpu", "1"), nil},
		"a memory hog, though others have more cpus": {[]*v1.Pod{large, pod("hog", false, "memory", "4Gi")}, pod("new", true, "cpu", "100m", "memory", "1Gi"), []string{"hog"}},
	} {
		t.Run(name, func(t *testing.T) {
			critical := with(tc.pod, static)
			got, err := admission.Victims(critical, tc.others, admission.Check(critical, tc.others, node))
			require.NoError(t, err)
			assert.ElementsMatch(t, tc.want, names(got))
			var left []*v1.Pod
			for _, o := range tc.others {
				if !slices.Contains(got, o) {
					left = append(left, o)
				}
			}
			assert.Empty(t, admission.Check(critical, left, node), "it fits when they are gone")
		})
	}
	t.Run("adm-12 nobody who may be ended would make the room", func(t *testing.T) {
		critical := with(pod("new", true, "cpu", "3800m"), static)
		_, err := admission.Victims(critical, []*v1.Pod{system, small}, admission.Check(critical, []*v1.Pod{system, small}, node))
		require.ErrorIs(t, err, admission.ErrNoVictims)
		assert.ErrorContains(t, err, "preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: ")
	})
	t.Run("adm-10 only for resources", func(t *testing.T) {
		critical := with(with(pod("new", false), static), func(p *v1.Pod) { p.Spec.NodeName = "cellar" })
		_, err := admission.Victims(critical, nil, admission.Check(critical, nil, admission.Node{Name: "kitchen"}))
		require.ErrorIs(t, err, admission.ErrNoVictims)
	})
}
