// Package restart decides whether an exited container is restarted. The planner uses it to
// select the containers to start, and status to determine the pod phase.
package restart

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// A Verdict is the consequence of an exit.
type Verdict int

// The verdicts. The zero value is Final.
const (
	Final Verdict = iota // the container has terminated and will not restart
	Again                // the container is restarted
	All                  // every container of the pod is restarted (rule rt-138)
)

// String returns a description of the verdict.
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

// After returns the consequence of an exit of container c of pod with exitCode. The
// container's rules have precedence over its policy, and that over the pod's policy (rules
// rt-33, rt-34). The deletion of the pod is not considered.
func After(pod *v1.Pod, c *v1.Container, exitCode int32) Verdict {
	if c.RestartPolicy != nil {
		if v, ok := byRules(c.RestartPolicyRules, exitCode); ok {
			return v
		}
	}
	return byPolicy(pod, c, exitCode)
}

// AfterWithoutAll is After for callers that do not support the action
// RestartAllContainers: if a rule with this action matches, the policies are used instead
// (rule rt-33).
func AfterWithoutAll(pod *v1.Pod, c *v1.Container, exitCode int32) Verdict {
	if v := After(pod, c, exitCode); v != All {
		return v
	}
	return byPolicy(pod, c, exitCode)
}

// RestartsAll reports whether an exit of c with exitCode restarts all containers of the pod
// (rule rt-138). Unlike After it also uses the rules of a container without its own policy
// (rule rt-36).
func RestartsAll(c *v1.Container, exitCode int32) bool {
	v, ok := byRules(c.RestartPolicyRules, exitCode)
	return ok && v == All
}

// MayRestartAll reports whether a container of pod has a rule that restarts all
// containers.
func MayRestartAll(pod *v1.Pod) bool {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for j := range list[i].RestartPolicyRules {
				if list[i].RestartPolicyRules[j].Action == v1.ContainerRestartRuleActionRestartAllContainers {
					return true
				}
			}
		}
	}
	return false
}

// Restartable reports whether c can be restarted in its pod, because of its policy
// or one of its rules (rule rt-38).
func Restartable(pod *v1.Pod, c *v1.Container) bool {
	if c.RestartPolicy != nil {
		for _, r := range c.RestartPolicyRules {
			if r.Action == v1.ContainerRestartRuleActionRestart || r.Action == v1.ContainerRestartRuleActionRestartAllContainers {
				return true
			}
		}
	}
	return Policy(pod, c) != v1.RestartPolicyNever
}

// byPolicy applies the policy of c, or else that of the pod.
func byPolicy(pod *v1.Pod, c *v1.Container, exitCode int32) Verdict {
	policy := Policy(pod, c)
	if policy == v1.RestartPolicyNever || policy == v1.RestartPolicyOnFailure && exitCode == 0 {
		return Final
	}
	return Again
}

// byRules applies the first matching rule (rule rt-35).
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

// Policy returns the policy of c without regard to exit codes: its own, or else the pod's
// (rules rt-37, rt-66). An invalid policy is ignored, and an empty one of a pod means
// Always.
func Policy(pod *v1.Pod, c *v1.Container) v1.RestartPolicy {
	if c.RestartPolicy != nil {
		switch p := v1.RestartPolicy(*c.RestartPolicy); p {
		case v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever:
			return p
		}
	}
	if pod.Spec.RestartPolicy == "" {
		return v1.RestartPolicyAlways
	}
	return pod.Spec.RestartPolicy
}

// Sidecar reports whether an init container is restartable: it is started in the order of
// the init containers and then keeps running.
func Sidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}
