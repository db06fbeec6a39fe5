package podspec

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// An ExitAction is what follows when a container exits.
type ExitAction int

// The actions. The zero value is NoRestart.
const (
	NoRestart            ExitAction = iota // the container stays terminated
	RestartContainer                       // the container is restarted
	RestartAllContainers                   // all containers of the pod are restarted (rule rt-138)
)

// String returns the action as it is printed in explanations.
func (a ExitAction) String() string {
	switch a {
	case RestartContainer:
		return "restart"
	case RestartAllContainers:
		return "restart all containers"
	default:
		return "final"
	}
}

// ActionAfterExit returns the action that follows the exit of container c of pod. An init
// container that is not a sidecar stays terminated if it has succeeded, and an instance that was
// stopped to be replaced is replaced. Otherwise the restart
// rules of the container precede its restart policy, which precedes the pod's (rules rt-33,
// rt-34, rt-64). The pod's deletion is ignored.
func ActionAfterExit(pod *v1.Pod, c *v1.Container, e Exit) ExitAction {
	if e.Replaced {
		return RestartContainer
	}
	code, final := decisive(pod, c, e)
	if final {
		return NoRestart
	}
	return ActionAfterCode(pod, c, code)
}

// decisive returns the exit code that rules and policies are applied to; final if they are not,
// because c has run to completion.
func decisive(pod *v1.Pod, c *v1.Container, e Exit) (code int32, final bool) {
	switch {
	case !RunsToCompletion(pod, c.Name):
		return e.Code, false
	case Succeeded(pod, c, e):
		return 0, true
	case e.Code == 0:
		return Killed, false // it was killed for lack of memory
	default:
		return e.Code, false
	}
}

// ActionAfterCode is the part of ActionAfterExit that the API server repeats when a status is
// written: it depends on rules, policies and the exit code only.
func ActionAfterCode(pod *v1.Pod, c *v1.Container, exitCode int32) ExitAction {
	if c.RestartPolicy != nil {
		if a, ok := byRules(c.RestartPolicyRules, exitCode); ok {
			return a
		}
	}
	return byPolicy(pod, c, exitCode)
}

// ActionAfterExitWithoutAll is ActionAfterExit for callers that do not support
// RestartAllContainers: a rule with this action is ignored, and the restart policies
// apply (rule rt-33).
func ActionAfterExitWithoutAll(pod *v1.Pod, c *v1.Container, e Exit) ExitAction {
	a := ActionAfterExit(pod, c, e)
	if a == RestartAllContainers {
		code, _ := decisive(pod, c, e)
		return byPolicy(pod, c, code)
	}
	return a
}

// RestartsAll reports whether all containers of the pod are restarted when c exits with
// the code (rule rt-138). Unlike in ActionAfterExit, the rules also apply to a container
// without a restart policy of its own (rule rt-36).
func RestartsAll(c *v1.Container, exitCode int32) bool {
	a, ok := byRules(c.RestartPolicyRules, exitCode)
	return ok && a == RestartAllContainers
}

// MayRestartAll reports whether a container of pod has a rule with the action
// RestartAllContainers.
func MayRestartAll(pod *v1.Pod) bool {
	for c := range Containers(pod) {
		for i := range c.RestartPolicyRules {
			if c.RestartPolicyRules[i].Action == v1.ContainerRestartRuleActionRestartAllContainers {
				return true
			}
		}
	}
	return false
}

// Restartable reports whether c may run more than once in its pod: by its restart policy
// or by one of its rules (rule rt-38).
func Restartable(pod *v1.Pod, c *v1.Container) bool {
	if c.RestartPolicy != nil {
		for _, r := range c.RestartPolicyRules {
			if r.Action == v1.ContainerRestartRuleActionRestart || r.Action == v1.ContainerRestartRuleActionRestartAllContainers {
				return true
			}
		}
	}
	return RestartPolicy(pod, c) != v1.RestartPolicyNever
}

// byPolicy applies the policy of c, else that of the pod.
func byPolicy(pod *v1.Pod, c *v1.Container, exitCode int32) ExitAction {
	policy := RestartPolicy(pod, c)
	if policy == v1.RestartPolicyNever || policy == v1.RestartPolicyOnFailure && exitCode == 0 {
		return NoRestart
	}
	return RestartContainer
}

// byRules applies the first rule that matches (rule rt-35).
func byRules(rules []v1.ContainerRestartRule, exitCode int32) (ExitAction, bool) {
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
			return RestartContainer, true
		case v1.ContainerRestartRuleActionRestartAllContainers:
			return RestartAllContainers, true
		}
	}
	return NoRestart, false
}

// RestartPolicy returns the restart policy of c: its own, else the pod's (rules rt-37,
// rt-66). An unknown policy of the container is ignored; the pod's defaults to Always.
func RestartPolicy(pod *v1.Pod, c *v1.Container) v1.RestartPolicy {
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

// IsSidecar reports whether an init container is restartable: the containers after it
// start while it runs.
func IsSidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}
