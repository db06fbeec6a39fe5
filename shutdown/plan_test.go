package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/shutdown"
)

const s = time.Second

// podOf is a pod with a priority; below zero it has no grace period.
func podOf(name string, priority int32, grace int64) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{Priority: &priority}}
	if grace >= 0 {
		pod.Spec.TerminationGracePeriodSeconds = &grace
	}
	return pod
}

func TestTheSimpleConfigurationIsTwoGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		total, critical time.Duration
		want            []shutdown.Group
		on              bool
		fails           string
	}{
		"sh-1 nothing":                  {},
		"sh-2 two groups":               {30 * s, 10 * s, []shutdown.Group{{0, 20 * s}, {2_000_000_000, 10 * s}}, true, ""},
		"sh-2 nothing for the critical": {30 * s, 0, []shutdown.Group{{0, 30 * s}, {2_000_000_000, 0}}, true, ""},
		"sh-2 all for the critical":     {10 * s, 10 * s, []shutdown.Group{{0, 0}, {2_000_000_000, 10 * s}}, true, ""},
		"sh-2 more than there is":       {10 * s, 30 * s, nil, false, "shutdown: grace period of critical pods 30s exceeds the total grace period 10s"},
		"sh-2 only for the critical":    {0, 10 * s, nil, false, "shutdown: grace period of critical pods 10s exceeds the total grace period 0s"},
		"sh-2 a fraction more":          {10 * s, 10*s + 1, nil, false, "shutdown: grace period of critical pods 10.000000001s exceeds the total grace period 10s"},
		"sh-2 less than nothing":        {-s, 0, nil, false, "shutdown: invalid grace period -1s: must be 0 or at least 1s"},
		"sh-2 less than a second":       {10 * s, s / 2, nil, false, "shutdown: invalid grace period of critical pods 500ms: must be 0 or at least 1s"},
		"sh-2 whole seconds":            {30*s + 900*time.Millisecond, 9*s + 999*time.Millisecond, []shutdown.Group{{0, 21 * s}, {2_000_000_000, 9 * s}}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			groups, err := shutdown.NewGroups(tc.total, tc.critical)
			if tc.fails != "" {
				require.EqualError(t, err, tc.fails)
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, tc.want, groups)
			assert.Equal(t, tc.on, shutdown.Policy{Groups: groups}.Enabled())
		})
	}
}

func TestEachPodIsInTheGroupOfItsPriority(t *testing.T) {
	groups := []shutdown.Group{{100000, 10 * s}, {2_000_000_000, 20 * s}, {0, 30 * s}, {10000, 40 * s}}
	plan := func(pods ...*v1.Pod) (got []string) {
		for _, step := range (shutdown.Policy{Groups: groups}).Plan(pods) {
			line := step.Period.String()
			for _, pod := range step.Pods {
				line += " " + pod.Name
			}
			got = append(got, line)
		}
		return got
	}
	none := podOf("none", 0, 30)
	none.Spec.Priority = nil
	for name, tc := range map[string]struct {
		pods []*v1.Pod
		want []string
	}{
		"no pods":          {nil, nil},
		"sh-3 ascending":   {[]*v1.Pod{podOf("c", 100000, 1), podOf("b", 10000, 1), podOf("a", 0, 1), podOf("d", 2_000_001_000, 1)}, []string{"30s a", "40s b", "10s c", "20s d"}},
		"sh-3 the largest": {[]*v1.Pod{podOf("b", 99999, 1), podOf("c", 100001, 1)}, []string{"40s b", "10s c"}},
		"sh-3 below all":   {[]*v1.Pod{podOf("a", -5, 1)}, []string{"30s a"}},
		"sh-3 none is 0":   {[]*v1.Pod{none}, []string{"30s none"}},
		"sh-7 empty ones":  {[]*v1.Pod{podOf("d", 2_000_000_000, 1), podOf("e", 2_000_000_001, 1)}, []string{"20s d e"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, plan(tc.pods...)) })
	}
	assert.Nil(t, shutdown.Policy{}.Plan([]*v1.Pod{none}))
	lowest := shutdown.Policy{Groups: []shutdown.Group{{10, s}, {20, s}}}.Plan([]*v1.Pod{podOf("a", 5, 1)})
	require.Len(t, lowest, 1, "sh-3")
	assert.EqualValues(t, 10, lowest[0].Priority)
}

func TestGraceIsTheLesserOfThePodsAndTheGroups(t *testing.T) { // sh-8
	for name, tc := range map[string]struct {
		pod  int64
		time time.Duration
		want int64
	}{
		"the pod's":         {5, 20 * s, 5},
		"the group's":       {30, 20 * s, 20},
		"the pod has none":  {-1, 20 * s, 20},
		"whole seconds":     {30, 20*s - 1, 19},
		"no time":           {30, 0, 0},
		"less than no time": {30, -s, 0},
		"the pod's is zero": {0, 20 * s, 0},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, shutdown.Group{Period: tc.time}.GracePeriodSeconds(podOf("a", 0, tc.pod)))
		})
	}
}

func TestTheFinalStatusHasTheReasonOfTheShutdown(t *testing.T) { // sh-9
	const message = "Pod was terminated in response to imminent node shutdown."
	assert.Equal(t, runtime.Termination{Failed: true, Reason: "Terminated", Message: message, Disruption: message}, shutdown.Kill{}.Termination())
}

func TestTheTotalIsTheSum(t *testing.T) {
	p := shutdown.Policy{Groups: []shutdown.Group{{0, 20 * s}, {10, 10 * s}}}
	assert.Equal(t, 30*s, p.Total())
	p.Propagation, p.Flush, p.CarryOver = 5*s, 3*s, true
	assert.Equal(t, 43*s, p.Total(), "twice the propagation, and the flush")
	assert.Zero(t, shutdown.Policy{}.Total())
}

func TestAShorterDelayShortensAllGroupsProportionally(t *testing.T) {
	p := shutdown.Policy{Groups: []shutdown.Group{{0, 20 * s}, {10, 10 * s}}, Propagation: 4 * s, Flush: 2 * s}
	assert.Equal(t, p, p.Within(40*s))
	assert.Equal(t, p, p.Within(time.Hour))
	half := p.Within(20 * s)
	assert.Equal(t, shutdown.Policy{Groups: []shutdown.Group{{0, 10 * s}, {10, 5 * s}}, Propagation: 2 * s, Flush: s}, half)
	assert.Equal(t, 20*s, half.Total())
	assert.Zero(t, p.Within(-s).Total())
	assert.Equal(t, 40*s, p.Total(), "it is not changed")
}

func TestInvalidPolicies(t *testing.T) {
	for wantErr, p := range map[string]shutdown.Policy{
		"group of priority 7: Period is negative":            {Groups: []shutdown.Group{{7, -s}}},
		"two groups have priority 7":                         {Groups: []shutdown.Group{{7, s}, {7, s}}},
		"invalid Propagation 31s: must be between 0 and 30s": {Propagation: 31 * s},
		"invalid Flush -1s: negative":                        {Flush: -s},
	} {
		_, err := shutdown.New(shutdown.Config{Policy: p, Pods: new(machine)})
		require.ErrorContains(t, err, wantErr)
	}
	_, err := shutdown.New(shutdown.Config{})
	require.EqualError(t, err, "shutdown: Config.Pods is nil")
	_, err = shutdown.New(shutdown.Config{Pods: new(machine), Triggers: []shutdown.Trigger{nil}})
	require.EqualError(t, err, "shutdown: Config.Triggers[0] is nil")
}
