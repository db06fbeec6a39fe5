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
	if c.RestartPolicy != nil {
		if v, ok := byRules(c.RestartPolicyRules, exitCode); ok {
			return v
		}
	}
	return byPolicy(pod, c, exitCode)
}

// AfterWithoutAll is After where nobody honours the action
// RestartAllContainers: a rule that says so is passed over, and the policies
// decide (rt-33).
func AfterWithoutAll(pod *v1.Pod, c *v1.Container, exitCode int32) Verdict {
	if v := After(pod, c, exitCode); v != All {
		return v
	}
	return byPolicy(pod, c, exitCode)
}

// RestartsAll reports whether an exit of c with the code makes all containers
// of the pod start over (rt-138). Unlike After it also looks at the rules of a
// container that has no policy of its own (rt-36).
func RestartsAll(c *v1.Container, exitCode int32) bool {
	v, ok := byRules(c.RestartPolicyRules, exitCode)
	return ok && v == All
}

// MayRestartAll reports whether a container of pod has a rule by which all
// start over.
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

// Restartable reports whether c may ever run a second time in its pod: by its
// policy or by one of its rules (rt-38).
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

// byPolicy applies the policy of c, else that of the pod.
func byPolicy(pod *v1.Pod, c *v1.Container, exitCode int32) Verdict {
	policy := Policy(pod, c)
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
// own, else the pod's (rt-37, rt-66). A policy nobody knows is none, and the
// empty one of a pod is Always.
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

// Sidecar reports whether an init container is restartable: it starts in its
// turn and then keeps running.
func Sidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}
