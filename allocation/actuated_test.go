package allocation_test

import (
	"errors"
	"testing"

	"context"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestResourcesTakeTheirPlaceInAPodAndNothingElse(t *testing.T) { // al-1, al-2
	spec := []string{"init i: cpu=1", "sidecar s: cpu=1/1", "a: cpu=1/2 memory=1Gi", "b: cpu=1", "pod: cpu=4"}
	granted := allocation.DesiredResources(podOf("u", spec...), false)

	t.Run("al-2 the same pod while nothing differs", func(t *testing.T) {
		pod := podOf("u", "init i: cpu=9", "sidecar s: cpu=1000m/1", "a: cpu=1/2 memory=1024Mi", "b: cpu=1", "pod: cpu=4")
		assert.Same(t, pod, granted.Apply(pod), "an init container that ends is not among them")
	})
	t.Run("al-2 regular containers, sidecars and the pod", func(t *testing.T) {
		pod := podOf("u", "init i: cpu=9", "sidecar s: cpu=2/2", "a: cpu=3/3", "b: cpu=1", "pod: cpu=8")
		pod.Spec.Containers[0].Image = "new"
		pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpu"}}
		before := pod.DeepCopy()
		got := granted.Apply(pod)
		assert.Equal(t, before, pod, "the pod is not changed")
		assert.True(t, same(res("cpu=9"), got.Spec.InitContainers[0].Resources))
		assert.True(t, same(res("cpu=1/1"), got.Spec.InitContainers[1].Resources))
		assert.True(t, same(res("cpu=1/2 memory=1Gi"), got.Spec.Containers[0].Resources))
		assert.True(t, same(res("cpu=4"), *got.Spec.Resources))
		assert.Equal(t, "new", got.Spec.Containers[0].Image)
		assert.Equal(t, pod.Spec.Containers[0].Resources.Claims, got.Spec.Containers[0].Resources.Claims)
	})
	t.Run("al-2 all init containers, with the option", func(t *testing.T) {
		all := allocation.DesiredResources(podOf("u", spec...), true)
		got := all.Apply(podOf("u", "init i: cpu=9", "sidecar s: cpu=1/1", "a: cpu=1/2 memory=1Gi", "b: cpu=1", "pod: cpu=4"))
		assert.True(t, same(res("cpu=1"), got.Spec.InitContainers[0].Resources))
	})
	t.Run("pod-level resources come and go with what was granted", func(t *testing.T) {
		none := allocation.DesiredResources(podOf("u", "a: cpu=1"), false)
		assert.Nil(t, none.Apply(podOf("u", "a: cpu=1", "pod: cpu=1")).Spec.Resources)
		assert.NotNil(t, granted.Apply(podOf("u", "a: cpu=1")).Spec.Resources)
	})
	t.Run("a container that was not there keeps what it asks for", func(t *testing.T) {
		pod := podOf("u", "sidecar s: cpu=1/1", "a: cpu=1/2 memory=1Gi", "b: cpu=1", "c: cpu=7", "pod: cpu=4")
		assert.Same(t, pod, granted.Apply(pod))
	})
}

func TestAResizeIsInProgressWhileARunningContainerHasSomethingElse(t *testing.T) {
	exited := runs("a: cpu=9/9")
	exited.Containers[0].State = runtime.ContainerExited
	for name, tc := range map[string]struct {
		granted  []string
		observed *runtime.PodStatus
		podLevel string
		want     bool
	}{
		"al-14 the same":                                     {[]string{"a: cpu=1/2 memory=1Gi/2Gi"}, runs("a: cpu=1000m/2 memory=1Gi/2Gi"), "", false},
		"al-14 another limit":                                {[]string{"a: cpu=1/2"}, runs("a: cpu=1/3"), "", true},
		"al-14 another request":                              {[]string{"a: cpu=1/2"}, runs("a: cpu=2/2"), "", true},
		"al-14 another memory request":                       {[]string{"a: memory=1Gi"}, runs("a: memory=2Gi"), "", true},
		"al-14 a limit that is not there yet":                {[]string{"a: cpu=1/2"}, runs("a: cpu=1"), "", true},
		"al-14 a sidecar":                                    {[]string{"sidecar s: cpu=1/1", "a:"}, runs("s: cpu=2/2"), "", true},
		"al-14 what does not run does not count":             {[]string{"a: cpu=1/2"}, exited, "", false},
		"al-14 nor what nobody knows":                        {[]string{"a: cpu=1/2"}, runs("a"), "", false},
		"al-14 nor other resources":                          {[]string{"a: example.com/gpu=1/1"}, runs("a: example.com/gpu=2/2"), "", false},
		"al-14 nobody looked":                                {[]string{"a: cpu=1/2"}, nil, "", false},
		"al-14 the pod as a whole":                           {[]string{"pod: cpu=2/2", "a:"}, runs("a"), "cpu=1/2", true},
		"al-14 the pod as a whole, the same":                 {[]string{"pod: cpu=2/2", "a:"}, runs("a"), "cpu=2/2", false},
		"al-19 a limit that was granted away":                {[]string{"a: cpu=1"}, runs("a: cpu=1/2"), "", false},
		"#123441 less than 2 shares is 2 shares":             {[]string{"a: cpu=1m/5"}, runs("a: cpu=2m/5"), "", false},
		"#123441 no request is 2 shares":                     {[]string{"a:"}, runs("a: cpu=2m"), "", false},
		"#123441 less than the least quota is that":          {[]string{"a: cpu=5m/5m"}, runs("a: cpu=5m/10m"), "", false},
		"#123441 a request that leaves no trace":             {[]string{"a: memory=1Gi/2Gi"}, runs("a: memory=-/2Gi"), "", false},
		"cm-32 no request but a limit: the request is that":  {[]string{"a: cpu=-/2"}, runs("a: cpu=2/2"), "", false},
		"the pod's limit stands in for the request":          {[]string{"pod: cpu=2/2", "a:"}, runs("a: cpu=2/2"), "cpu=2/2", false},
		"not for a request of its own":                       {[]string{"pod: cpu=2/2", "a: cpu=1"}, runs("a: cpu=2/2"), "cpu=2/2", true},
		"the pod's limit has changed":                        {[]string{"pod: cpu=4/4", "a:"}, runs("a: cpu=2/2"), "cpu=4/4", true},
		"more than the least is told apart, a milli at that": {[]string{"a: cpu=3m/5"}, runs("a: cpu=2m/5"), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			var podLevel *v1.ResourceRequirements
			if tc.podLevel != "" {
				podLevel = new(res(tc.podLevel))
			}
			assert.Equal(t, tc.want, allocation.InProgress(podOf("u", tc.granted...), tc.observed, podLevel))
		})
	}
}

func TestActuatedIsWhatTheRuntimeShows(t *testing.T) { // al-1
	granted := podOf("u", "pod: cpu=9/9", "a: cpu=1/2 memory=1Gi/2Gi", "b: cpu=1/2", "c: cpu=1/2")
	before := granted.DeepCopy()
	has := allocation.Actuated(granted, runs("a: cpu=3", "b"), new(res("cpu=8/8")))
	assert.Equal(t, before, granted)
	assert.True(t, same(res("cpu=3 memory=1Gi"), has.Spec.Containers[0].Resources), "no limits are none, no request is the one granted")
	assert.True(t, same(res("cpu=1/2"), has.Spec.Containers[1].Resources), "not known")
	assert.True(t, same(res("cpu=1/2"), has.Spec.Containers[2].Resources), "does not run")
	assert.True(t, same(res("cpu=8/8"), *has.Spec.Resources))
	assert.Same(t, granted, allocation.Actuated(granted, nil, nil))
}

func TestAMemoryLimitBelowTheUsageIsRefused(t *testing.T) { // al-18
	down := allocation.PlanResize(podOf("u", "a: memory=-/256", "b: memory=-/100"), podOf("u", "a: memory=-/128", "b: memory=-/50"), runs("a", "b"))
	for name, tc := range map[string]struct {
		usage map[string]int64
		want  string
	}{
		"al-18 nothing known": {nil, ""},
		"al-18 enough left":   {map[string]int64{"": 177, "a": 127, "b": 49}, ""},
		"al-18 one container": {map[string]int64{"a": 128},
			`cannot decrease memory limits: attempting to set container "a" memory limit (128) below current usage (128)`},
		"al-18 the pod": {map[string]int64{"": 200},
			`cannot decrease memory limits: attempting to set pod memory limit (178) below current usage (200)`},
		"al-18 several": {map[string]int64{"a": 130, "b": 60},
			`cannot decrease memory limits: [attempting to set container "a" memory limit (128) below current usage (130), attempting to set container "b" memory limit (50) below current usage (60)]`},
	} {
		t.Run(name, func(t *testing.T) {
			err := allocation.CheckDecrease(down, tc.usage)
			if tc.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tc.want)
			}
		})
	}
	up := allocation.PlanResize(podOf("u", "a: cpu=-/2 memory=-/128"), podOf("u", "a: cpu=-/1 memory=-/256"), runs("a"))
	require.NoError(t, allocation.CheckDecrease(up, map[string]int64{"": 1000, "a": 1000}), "only memory, only decreases")
}

// cgroups is an Actuator that writes down what is asked of it, and fails where
// told.
type cgroups struct {
	asked []string
	fail  string
	then  func()
}

func (c *cgroups) ask(what string) error {
	c.asked = append(c.asked, what)
	if what == c.fail {
		if c.then != nil {
			c.then()
		}
		return errors.New("boom")
	}
	return nil
}

func (c *cgroups) UpdatePodSandboxResources(ctx context.Context, all v1.ResourceRequirements) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.ask("announce " + all.Limits.Cpu().String())
}
func (c *cgroups) SetPodCgroup(_ context.Context, s allocation.ResizeStep) error {
	return c.ask("set " + s.Kind() + " " + s.After.Limits.Cpu().String())
}
func (c *cgroups) UpdateContainerResources(_ context.Context, name string, all v1.ResourceRequirements) error {
	return c.ask("update " + name + " " + all.Limits.Cpu().String())
}

func TestCarryAnnouncesAndStopsAtTheFirstError(t *testing.T) {
	steps := allocation.PlanResize(podOf("u", "a: cpu=1/1", "b: cpu=1/1"), podOf("u", "a: cpu=1/2", "b: cpu=1/3"), runs("a", "b"))
	require.Len(t, steps, 3)
	for name, tc := range map[string]struct {
		fail  string
		done  int
		asked []string
	}{
		"al-17 announced before it is written, al-21 done steps are told": {"", 3, []string{"announce 5", "set pod limit 5", "update a 2", "update b 3"}},
		"al-17 a refusal ends it":                         {"announce 5", 0, []string{"announce 5"}},
		"al-17 a failed write announces the old values":   {"set pod limit 5", 0, []string{"announce 5", "set pod limit 5", "announce 2"}},
		"al-20 an error stops, al-21 what was done stays": {"update a 2", 1, []string{"announce 5", "set pod limit 5", "update a 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cgroups{fail: tc.fail}
			done, err := allocation.Actuate(t.Context(), steps, c)
			assert.Equal(t, tc.done, done)
			assert.Equal(t, tc.asked, c.asked)
			if tc.fail == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "boom")
				require.ErrorContains(t, err, steps[done].String(), "it names the step")
			}
		})
	}
	t.Run("al-17 also when it is called off meanwhile", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := &cgroups{fail: "set pod limit 5", then: cancel}
		_, err := allocation.Actuate(ctx, steps, c)
		require.ErrorContains(t, err, "boom")
		assert.Equal(t, "announce 2", c.asked[2])
		_, err = allocation.Actuate(ctx, steps, c)
		require.ErrorIs(t, err, context.Canceled)
		assert.Len(t, c.asked, 3)
	})
}
