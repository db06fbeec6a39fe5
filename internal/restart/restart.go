// Package restart decides whether a container that has exited runs again. The
// planner asks to know what to start, status asks to know what is final.
package restart

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// A Verdict is what follows an exit.
type Verdict int

// The verdicts. The zero value is Final.
const (
	Final Verdict = iota // the container has exited for good
	Again                // it is started again
	All                  // every container of the pod is started anew (rt-138)
)

// String returns the verdict in words.
func (v Verdict) String() string {
	switch v {
	case Again:
		return "restart"
	case All:
		return "restart all containers"
	default:
		return "final"
	}
}

// After returns what follows when container c of pod exits with the code:
// its own rules, its own policy, the pod's policy (rt-33, rt-34). It does not
// look at the pod's deletion.
func After(pod *v1.Pod, c *v1.Container, exitCode int32) Verdict {
	policy := pod.Spec.RestartPolicy
	if c.RestartPolicy != nil {
		if v, ok := byRules(c.RestartPolicyRules, exitCode); ok {
			return v
		}
		switch p := v1.RestartPolicy(*c.RestartPolicy); p {
		case v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever:
			policy = p
		}
	}
	if policy == v1.RestartPolicyNever || policy == v1.RestartPolicyOnFailure && exitCode == 0 {
		return Final
	}
	return Again
}

// byRules applies the first rule that matches (rt-35).
func byRules(rules []v1.ContainerRestartRule, exitCode int32) (Verdict, bool) {
	for _, r := range rules {
		if r.ExitCodes == nil {
			continue
		}
		listed := slices.Contains(r.ExitCodes.Values, exitCode)
		match := r.ExitCodes.Operator == v1.ContainerRestartRuleOnExitCodesOpIn && listed ||
			r.ExitCodes.Operator == v1.ContainerRestartRuleOnExitCodesOpNotIn && !listed
		if !match {
			continue
		}
		switch r.Action {
		case v1.ContainerRestartRuleActionRestart:
			return Again, true
		case v1.ContainerRestartRuleActionRestartAllContainers:
			return All, true
		}
	}
	return Final, false
}

// Policy returns the policy that holds for c where no exit code is at hand: its
// own, else the pod's (rt-37, rt-66). The empty policy is Always.
func Policy(pod *v1.Pod, c *v1.Container) v1.RestartPolicy {
	policy := pod.Spec.RestartPolicy
	if c.RestartPolicy != nil {
		policy = v1.RestartPolicy(*c.RestartPolicy)
	}
	if policy == "" {
		policy = v1.RestartPolicyAlways
	}
	return policy
}

// Sidecar reports whether an init container is restartable: it starts in its
// turn and then keeps running.
func Sidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}
