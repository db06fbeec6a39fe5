package podspec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

func TestAfterFollowsRulesThenContainerThenPod(t *testing.T) {
	rule := func(action v1.ContainerRestartRuleAction, op v1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) v1.ContainerRestartRule {
		return v1.ContainerRestartRule{Action: action, ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes}}
	}
	const (
		in       = v1.ContainerRestartRuleOnExitCodesOpIn
		notIn    = v1.ContainerRestartRuleOnExitCodesOpNotIn
		doAgain  = v1.ContainerRestartRuleActionRestart
		doAll    = v1.ContainerRestartRuleActionRestartAllContainers
		always   = v1.ContainerRestartPolicyAlways
		onFail   = v1.ContainerRestartPolicyOnFailure
		never    = v1.ContainerRestartPolicyNever
		nonsense = v1.ContainerRestartPolicy("Sometimes")
	)
	for name, tc := range map[string]struct {
		pod   v1.RestartPolicy
		own   *v1.ContainerRestartPolicy
		rules []v1.ContainerRestartRule
		code  int32
		want  podspec.ExitAction
	}{
		"empty pod policy is Always":           {pod: "", code: 0, want: podspec.RestartContainer},
		"Always restarts success too (rt-34)":  {pod: v1.RestartPolicyAlways, code: 0, want: podspec.RestartContainer},
		"OnFailure, success":                   {pod: v1.RestartPolicyOnFailure, code: 0, want: podspec.NoRestart},
		"OnFailure, failure":                   {pod: v1.RestartPolicyOnFailure, code: 3, want: podspec.RestartContainer},
		"Never":                                {pod: v1.RestartPolicyNever, code: 3, want: podspec.NoRestart},
		"own Always beats pod Never (rt-33)":   {pod: v1.RestartPolicyNever, own: new(always), code: 0, want: podspec.RestartContainer},
		"own Never beats pod Always":           {pod: v1.RestartPolicyAlways, own: new(never), code: 1, want: podspec.NoRestart},
		"own OnFailure, success":               {pod: v1.RestartPolicyAlways, own: new(onFail), code: 0, want: podspec.NoRestart},
		"unknown own policy falls to the pod":  {pod: v1.RestartPolicyNever, own: new(nonsense), code: 1, want: podspec.NoRestart},
		"rule In matches":                      {pod: v1.RestartPolicyNever, own: new(never), rules: []v1.ContainerRestartRule{rule(doAgain, in, 42)}, code: 42, want: podspec.RestartContainer},
		"rule In does not match":               {pod: v1.RestartPolicyAlways, own: new(never), rules: []v1.ContainerRestartRule{rule(doAgain, in, 42)}, code: 41, want: podspec.NoRestart},
		"rule NotIn matches (rt-35)":           {pod: v1.RestartPolicyNever, own: new(never), rules: []v1.ContainerRestartRule{rule(doAgain, notIn, 1)}, code: 2, want: podspec.RestartContainer},
		"first matching rule wins":             {pod: v1.RestartPolicyNever, own: new(never), rules: []v1.ContainerRestartRule{rule(doAll, in, 7), rule(doAgain, in, 7)}, code: 7, want: podspec.RestartAllContainers},
		"rule without exit codes is ignored":   {pod: v1.RestartPolicyNever, own: new(never), rules: []v1.ContainerRestartRule{{Action: doAgain}}, code: 7, want: podspec.NoRestart},
		"rules need an own policy (rt-36)":     {pod: v1.RestartPolicyNever, rules: []v1.ContainerRestartRule{rule(doAgain, in, 7)}, code: 7, want: podspec.NoRestart},
		"unknown action goes on to the policy": {pod: v1.RestartPolicyNever, own: new(always), rules: []v1.ContainerRestartRule{rule("Explode", in, 7)}, code: 7, want: podspec.RestartContainer},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &v1.Pod{Spec: v1.PodSpec{RestartPolicy: tc.pod}}
			c := &v1.Container{RestartPolicy: tc.own, RestartPolicyRules: tc.rules}
			assert.Equal(t, tc.want, podspec.ActionAfterExit(pod, c, podspec.Exit{Code: tc.code}))
		})
	}
}

func TestAllContainersAreRestartedWhereThatIsHonoured(t *testing.T) { // rt-33, rt-36, rt-138
	all := v1.ContainerRestartRule{
		Action:    v1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}
	pod := &v1.Pod{Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{
		RestartPolicy: new(v1.ContainerRestartPolicyOnFailure), RestartPolicyRules: []v1.ContainerRestartRule{all},
	}}}}
	c := &pod.Spec.Containers[0]
	assert.True(t, podspec.MayRestartAll(pod))
	assert.True(t, podspec.RestartsAll(c, 42))
	assert.False(t, podspec.RestartsAll(c, 41))
	assert.Equal(t, podspec.RestartAllContainers, podspec.ActionAfterExit(pod, c, podspec.Exit{Code: 42}))
	assert.Equal(t, podspec.RestartContainer, podspec.ActionAfterExitWithoutAll(pod, c, podspec.Exit{Code: 42}), "the policy decides")
	assert.Equal(t, podspec.NoRestart, podspec.ActionAfterExitWithoutAll(pod, c, podspec.Exit{}))

	c.RestartPolicy = nil
	assert.True(t, podspec.RestartsAll(c, 42), "also without a policy of its own")
	assert.Equal(t, podspec.NoRestart, podspec.ActionAfterExit(pod, c, podspec.Exit{Code: 42}))

	c.RestartPolicyRules[0].Action = v1.ContainerRestartRuleActionRestart
	assert.False(t, podspec.MayRestartAll(pod))
	assert.False(t, podspec.RestartsAll(c, 42))
}

func TestRestartable(t *testing.T) { // rt-38
	rule := []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestart}}
	never, always := new(v1.ContainerRestartPolicyNever), new(v1.ContainerRestartPolicyAlways)
	for name, tc := range map[string]struct {
		pod  v1.RestartPolicy
		c    v1.Container
		want bool
	}{
		"pod Never":               {v1.RestartPolicyNever, v1.Container{}, false},
		"pod OnFailure":           {v1.RestartPolicyOnFailure, v1.Container{}, true},
		"own Always":              {v1.RestartPolicyNever, v1.Container{RestartPolicy: always}, true},
		"own Never":               {v1.RestartPolicyAlways, v1.Container{RestartPolicy: never}, false},
		"own Never with a rule":   {v1.RestartPolicyAlways, v1.Container{RestartPolicy: never, RestartPolicyRules: rule}, true},
		"a rule without a policy": {v1.RestartPolicyNever, v1.Container{RestartPolicyRules: rule}, false},
	} {
		assert.Equal(t, tc.want, podspec.Restartable(&v1.Pod{Spec: v1.PodSpec{RestartPolicy: tc.pod}}, &tc.c), name)
	}
}

func TestPolicy(t *testing.T) { // rt-37, rt-66
	pod := &v1.Pod{}
	assert.Equal(t, v1.RestartPolicyAlways, podspec.RestartPolicy(pod, &v1.Container{}))
	pod.Spec.RestartPolicy = v1.RestartPolicyNever
	assert.Equal(t, v1.RestartPolicyNever, podspec.RestartPolicy(pod, &v1.Container{}))
	assert.Equal(t, v1.RestartPolicyOnFailure, podspec.RestartPolicy(pod, &v1.Container{RestartPolicy: new(v1.ContainerRestartPolicyOnFailure)}))
	assert.Equal(t, v1.RestartPolicyNever, podspec.RestartPolicy(pod, &v1.Container{RestartPolicy: new(v1.ContainerRestartPolicy("Sometimes"))}))
}
