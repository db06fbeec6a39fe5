package allocation_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestStepsKeepThePodLimitAboveTheContainers(t *testing.T) {
	for name, tc := range map[string]struct {
		has, granted []string
		observed     *runtime.PodStatus
		want         []string
	}{
		"al-16 nothing to do": {[]string{"a: cpu=1/2"}, []string{"a: cpu=1000m/2"}, runs("a"), nil},
		"al-16 up: pod limit, pod request, container": {
			[]string{"a: memory=64Mi/128Mi"}, []string{"a: memory=96Mi/256Mi"}, runs("a"),
			[]string{"pod limit: memory 64Mi/128Mi to 64Mi/256Mi", "pod request: memory 64Mi/256Mi to 96Mi/256Mi", "container a: memory 64Mi/128Mi to 96Mi/256Mi"},
		},
		"al-16 down: container, pod request, pod limit": {
			[]string{"a: memory=96Mi/256Mi"}, []string{"a: memory=64Mi/128Mi"}, runs("a"),
			[]string{"container a: memory 96Mi/256Mi to 64Mi/128Mi", "pod request: memory 96Mi/256Mi to 64Mi/256Mi", "pod limit: memory 64Mi/256Mi to 64Mi/128Mi"},
		},
		"al-16 memory before cpu, whichever way they go": {
			[]string{"a: cpu=1/1 memory=1Gi/1Gi"}, []string{"a: cpu=2/2 memory=1Gi/512Mi"}, runs("a"),
			[]string{"container a: memory 1Gi/1Gi to 1Gi/512Mi", "pod limit: memory 1Gi/1Gi to 1Gi/512Mi",
				"pod limit: cpu 1/1 to 1/2", "pod request: cpu 1/2 to 2/2", "container a: cpu 1/1 to 2/2"},
		},
		"al-16 decreases before increases": {
			[]string{"a: cpu=1/1", "b: cpu=3/3"}, []string{"a: cpu=3/3", "b: cpu=1/1"}, runs("a", "b"),
			[]string{"container b: cpu 3/3 to 1/1", "container a: cpu 1/1 to 3/3"},
		},
		"al-16 requests up while limits go down": {
			[]string{"a: cpu=1/4"}, []string{"a: cpu=2/3"}, runs("a"),
			[]string{"pod request: cpu 1/4 to 2/4", "container a: cpu 1/4 to 2/3", "pod limit: cpu 2/4 to 2/3"},
		},
		"al-16 pod-level resources alone": {
			[]string{"pod: cpu=2/4", "a: cpu=1/2"}, []string{"pod: cpu=3/3", "a: cpu=1/2"}, runs("a"),
			[]string{"pod request: cpu 2/4 to 3/4", "pod limit: cpu 3/4 to 3/3"},
		},
		"cm-33 containers without a limit follow the pod's": {
			[]string{"pod: cpu=1/2", "a: cpu=1"}, []string{"pod: cpu=1/4", "a: cpu=1"}, runs("a"),
			[]string{"pod limit: cpu 1/2 to 1/4", "container a: cpu 1/2 to 1/4"},
		},
		"cm-33 also if the runtime reports the pod's limit as theirs": {
			[]string{"pod: cpu=1/2", "a: cpu=1/2"}, []string{"pod: cpu=1/4", "a: cpu=1"}, runs("a"),
			[]string{"pod limit: cpu 1/2 to 1/4", "container a: cpu 1/2 to 1/4"},
		},
		"cm-13 no limit for the pod while a container has none": {
			[]string{"a: cpu=1/2", "b: cpu=1"}, []string{"a: cpu=1/3", "b: cpu=1"}, runs("a", "b"),
			[]string{"container a: cpu 1/2 to 1/3"},
		},
		"al-19 a removed limit stays": {
			[]string{"a: cpu=1/2 memory=1Gi/2Gi"}, []string{"a: cpu=1 memory=1Gi"}, runs("a"), nil,
		},
		"al-19 also the pod's": {
			[]string{"pod: cpu=1/2", "a: cpu=1/1"}, []string{"a: cpu=1"}, runs("a"), nil,
		},
		"al-16 a limit that is new is a decrease": {
			[]string{"a: cpu=1"}, []string{"a: cpu=1/2"}, runs("a"),
			[]string{"container a: cpu 1/- to 1/2", "pod limit: cpu 1/- to 1/2"},
		},
		"only running containers are changed, including sidecars": {
			[]string{"sidecar s: cpu=1/1", "init i: cpu=1/1", "a: cpu=1/1"}, []string{"sidecar s: cpu=2/2", "init i: cpu=1/1", "a: cpu=2/2"}, runs("s"),
			[]string{"pod limit: cpu 2/2 to 2/4", "pod request: cpu 2/4 to 4/4", "container s: cpu 1/1 to 2/2"},
		},
		"requests that are new and that go": {
			[]string{"a: cpu=1", "b:"}, []string{"a:", "b: cpu=1"}, runs("a", "b"),
			[]string{"container a: cpu 1/- to -/-", "container b: cpu -/- to 1/-"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			has, granted := podOf("u", tc.has...), podOf("u", tc.granted...)
			before, after := has.DeepCopy(), granted.DeepCopy()
			var got []string
			for _, s := range allocation.PlanResize(has, granted, tc.observed) {
				got = append(got, s.String())
			}
			assert.Equal(t, tc.want, got)
			assert.Equal(t, before, has, "nothing is changed")
			assert.Equal(t, after, granted)
		})
	}
}

func TestAStepHasWhatTheCallsOfARuntimeTake(t *testing.T) {
	steps := allocation.PlanResize(podOf("u", "a: cpu=1/2 memory=1Gi/2Gi example.com/gpu=1/1"), podOf("u", "a: cpu=2/2 memory=2Gi/2Gi example.com/gpu=1/1"), runs("a"))
	require.Len(t, steps, 4)
	assert.True(t, same(res("cpu=1/2 memory=2Gi/2Gi"), steps[1].After), "memory, cpu as before, nothing else")
	assert.True(t, same(res("cpu=1/2 memory=2Gi/2Gi"), steps[3].Before))
	assert.True(t, same(res("cpu=2/2 memory=2Gi/2Gi"), steps[3].After))
}

func same(a, b v1.ResourceRequirements) bool {
	return allocation.EqualResources(&a, &b)
}

// For random pods: executed in order, the steps reach the desired state, and meanwhile
// the limit of the pod is below the sum of its containers' only if it was so before,
// or will be so after (cm-43).
func TestNoStepSetsThePodLimitBelowItsContainers(t *testing.T) {
	const seed = 43
	rnd := rand.New(rand.NewPCG(seed, seed))
	figure := func(name string) string {
		limit := rnd.IntN(6)
		if limit == 0 {
			return ""
		}
		text := name + "=" + strconv.Itoa(1+rnd.IntN(limit)) + "/"
		if rnd.IntN(8) > 0 {
			text += strconv.Itoa(limit)
		}
		return text + " "
	}
	for round := range 3000 {
		var hasLines, grantedLines, up []string
		names := []string{"a", "b", "c"}[:1+rnd.IntN(3)]
		for _, name := range names {
			hasLines = append(hasLines, name+": "+figure("cpu")+figure("memory"))
			grantedLines = append(grantedLines, name+": "+figure("cpu")+figure("memory"))
			up = append(up, name)
		}
		if rnd.IntN(4) == 0 {
			hasLines = append(hasLines, "pod: cpu=1/"+strconv.Itoa(1+rnd.IntN(12)))
			grantedLines = append(grantedLines, "pod: cpu=1/"+strconv.Itoa(1+rnd.IntN(12)))
		}
		has, granted := podOf("u", hasLines...), podOf("u", grantedLines...)
		steps := allocation.PlanResize(has, granted, runs(up...))

		for _, name := range []v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU} {
			limits, pod, bounded := map[string]resource.Quantity{}, resource.Quantity{}, false
			for _, c := range has.Spec.Containers {
				if q, ok := c.Resources.Limits[name]; ok {
					limits[c.Name] = q
				}
			}
			narrow := func() bool {
				var sum resource.Quantity
				for _, q := range limits {
					sum.Add(q)
				}
				return bounded && sum.Cmp(pod) > 0
			}
			for _, s := range steps { // where the pod begins
				if s.Container == "" {
					pod, bounded = s.Before.Limits[name], has2(s.Before.Limits, name)
					break
				}
			}
			atFirst, onTheWay, shrunk := narrow(), false, false
			for _, s := range steps {
				switch {
				case s.Resource != name:
				case s.Kind() == "pod limit":
					old, was := s.Before.Limits[name]
					shrunk = !was || old.Cmp(s.After.Limits[name]) > 0
				case s.Container != "":
					require.False(t, shrunk, "seed %d, round %d: the pod gets less before its containers: %v", seed, round, steps)
				}
				if q, ok := s.After.Limits[name]; ok && s.Container != "" {
					limits[s.Container] = q
				} else if ok {
					pod, bounded = q, true
				}
				onTheWay = onTheWay || narrow()
			}
			// A pod with pod-level limits may have less than the sum of its
			// containers.
			if onTheWay && !atFirst && !narrow() && has.Spec.Resources == nil {
				t.Fatalf("seed %d, round %d: %v to %v, %s: %v", seed, round, hasLines, grantedLines, name, steps)
			}
		}
		// Where it ends: nothing is left to do, but for limits that stay.
		if again := allocation.PlanResize(granted, granted, runs(up...)); len(again) > 0 {
			t.Fatalf("seed %d, round %d: %v", seed, round, again)
		}
		at := map[string]v1.ResourceRequirements{}
		for _, s := range steps {
			before, seen := at[s.Container]
			if seen && !same(before, s.Before) {
				t.Fatalf("seed %d, round %d: step %v does not go on where the one before ended: %v", seed, round, s, steps)
			}
			at[s.Container] = s.After
		}
		for _, c := range granted.Spec.Containers {
			for name, want := range c.Resources.Limits {
				if got, changed := at[c.Name]; changed {
					q := got.Limits[name]
					require.Zero(t, q.Cmp(want), "seed %d, round %d, %s of %s", seed, round, name, c.Name)
				}
			}
		}
	}
}

func has2(list v1.ResourceList, name v1.ResourceName) bool {
	_, ok := list[name]
	return ok
}
