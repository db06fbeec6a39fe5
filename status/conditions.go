package status

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// Owned reports whether the node writes conditions of this type (rule st-36). All others belong to
// other writers and are passed through. DisruptionTarget has several writers and is not owned.
func Owned(t v1.PodConditionType) bool {
	switch t {
	case v1.PodScheduled, v1.PodReady, v1.PodInitialized, v1.ContainersReady, v1.PodReadyToStartContainers,
		v1.PodResizePending, v1.PodResizeInProgress, v1.AllContainersRestarting:
		return true
	}
	return false
}

// conditionFacts is the input of computeConditions.
type conditionFacts struct {
	// Pod has the spec and, in its status, the conditions of other writers.
	Pod *v1.Pod

	// Status has the new phase, container statuses and generation. Its conditions are not
	// used.
	Status *v1.PodStatus

	// Previous are the conditions last reported.
	Previous []v1.PodCondition

	// Observed has the sandboxes; nil if the pod was not inspected.
	Observed *runtime.PodStatus

	// Resize as in [Resize].Conditions, with the generations to which they refer.
	Resize []v1.PodCondition

	// Disruption as in [runtime.Termination].
	Disruption string

	// Unready as in [Facts].
	Unready Unready

	Now time.Time
}

// computeConditions returns all conditions of a pod: those of other writers, then those that the node
// owns. A condition keeps its transition time while its status is unchanged (rule st-51). A rejected pod
// has only those that were reported before.
func computeConditions(f conditionFacts) []v1.PodCondition {
	ready := containersReady(f.Pod, f.Status)
	own := []v1.PodCondition{
		readyToStart(&f),
		initialized(&f),
		podReady(&f, ready),
		ready,
		{Type: v1.PodScheduled, Status: v1.ConditionTrue},
	}
	if podspec.MayRestartAll(f.Pod) {
		own = append(own, restarting(&f))
	}
	all := make([]v1.PodCondition, 0, len(f.Pod.Status.Conditions)+len(f.Resize)+len(own))
	for i := range f.Pod.Status.Conditions {
		if c := f.Pod.Status.Conditions[i]; !Owned(c.Type) && c.Type != v1.DisruptionTarget {
			all = append(all, c)
		}
	}
	for _, c := range f.Resize {
		if c.Type == v1.PodResizePending || c.Type == v1.PodResizeInProgress {
			all = append(all, f.withTransitionTime(c))
		}
	}
	if c := disrupted(&f); c != nil {
		all = append(all, *c)
	}
	rejected := isRejected(f.Status)
	for _, c := range own {
		if rejected && Condition(f.Previous, c.Type) == nil {
			continue
		}
		c.ObservedGeneration = f.Status.ObservedGeneration
		all = append(all, f.withTransitionTime(c))
	}
	return all
}

// isRejected reports whether s is the status of a pod that failed before its containers were reported
// (rule sl-18).
func isRejected(s *v1.PodStatus) bool {
	return s.Phase == v1.PodFailed && len(s.InitContainerStatuses)+len(s.ContainerStatuses)+len(s.EphemeralContainerStatuses) == 0
}

// disrupted returns the condition DisruptionTarget, or nil. The node's own is never removed and
// precedes that of other writers, which is otherwise passed through. Once the phase is terminal,
// conditions set by other writers are left unchanged (rules st-37, st-75).
func disrupted(f *conditionFacts) *v1.PodCondition {
	theirs := Condition(f.Pod.Status.Conditions, v1.DisruptionTarget)
	was := Condition(f.Previous, v1.DisruptionTarget)
	switch {
	case theirs != nil && Terminal(f.Pod.Status.Phase):
		return theirs
	case was != nil && ownDisruption(was):
		return was
	case f.Disruption != "":
		return new(f.withTransitionTime(v1.PodCondition{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, ObservedGeneration: f.Status.ObservedGeneration,
			Reason: v1.PodReasonTerminationByKubelet, Message: f.Disruption,
		}))
	default:
		return theirs
	}
}

// ownDisruption reports whether the node has set this DisruptionTarget condition.
func ownDisruption(c *v1.PodCondition) bool {
	return c.Type == v1.DisruptionTarget && c.Reason == v1.PodReasonTerminationByKubelet
}

// withTransitionTime returns c with the time at which its status changed last (rule st-51).
func (f *conditionFacts) withTransitionTime(c v1.PodCondition) v1.PodCondition {
	c.LastTransitionTime = seconds(f.Now)
	if was := Condition(f.Previous, c.Type); was != nil && was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	return c
}

// Condition returns the condition of that type, or nil. It points into list.
func Condition(list []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	for i := range list {
		if list[i].Type == t {
			return &list[i]
		}
	}
	return nil
}

// IsReady reports whether the Ready condition is True.
func IsReady(s *v1.PodStatus) bool {
	c := Condition(s.Conditions, v1.PodReady)
	return c != nil && c.Status == v1.ConditionTrue
}

// containersReady returns the ContainersReady condition without times: True if every regular container
// and every sidecar is ready (rule st-39).
func containersReady(pod *v1.Pod, s *v1.PodStatus) v1.PodCondition {
	not := func(reason, message string) v1.PodCondition {
		return v1.PodCondition{Type: v1.ContainersReady, Status: v1.ConditionFalse, Reason: reason, Message: message}
	}
	if len(s.ContainerStatuses) == 0 {
		return not("UnknownContainerStatuses", "")
	}
	if s.Phase == v1.PodFailed {
		return not("PodFailed", "")
	}
	var unknown, unready []string
	check := func(name string, list []v1.ContainerStatus) {
		if st := find(list, name); st == nil {
			unknown = append(unknown, name)
		} else if !st.Ready {
			unready = append(unready, name)
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; podspec.IsSidecar(c) {
			check(c.Name, s.InitContainerStatuses)
		}
	}
	for i := range pod.Spec.Containers {
		check(pod.Spec.Containers[i].Name, s.ContainerStatuses)
	}
	if s.Phase == v1.PodSucceeded && len(unknown) == 0 {
		return not("PodCompleted", "")
	}
	if message := unmetMessage(unknown, "unready", unready); message != "" {
		return not("ContainersNotReady", message)
	}
	return v1.PodCondition{Type: v1.ContainersReady, Status: v1.ConditionTrue}
}

// unmetMessage returns a message with the containers because of which a condition is not True.
func unmetMessage(unknown []string, kind string, others []string) string {
	var parts []string
	if len(unknown) > 0 {
		parts = append(parts, fmt.Sprintf("containers with unknown status: %s", unknown))
	}
	if len(others) > 0 {
		parts = append(parts, fmt.Sprintf("containers with %s status: %s", kind, others))
	}
	return strings.Join(parts, ", ")
}

// podReady returns the Ready condition: False if ContainersReady is, if a readiness gate is not True, or
// if the node makes the pod unready. The gates take precedence in the reason (rule st-40).
func podReady(f *conditionFacts, containers v1.PodCondition) v1.PodCondition {
	pod, c := f.Pod, containers
	c.Type = v1.PodReady
	if c.Status != v1.ConditionTrue {
		return c
	}
	if f.Unready.Reason != "" {
		c.Status, c.Reason, c.Message = v1.ConditionFalse, f.Unready.Reason, f.Unready.Message
	}
	var notReady []string
	for _, gate := range pod.Spec.ReadinessGates {
		switch g := Condition(pod.Status.Conditions, gate.ConditionType); {
		case g == nil:
			notReady = append(notReady, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", string(gate.ConditionType)))
		case g.Status != v1.ConditionTrue:
			notReady = append(notReady, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", string(gate.ConditionType), g.Status))
		}
	}
	if len(notReady) > 0 {
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "ReadinessGatesNotReady", strings.Join(notReady, ", ")
	}
	return c
}

// initialized returns the Initialized condition. Once True it stays True (rule st-42); a pod whose
// containers are all restarted has the condition AllContainersRestarting.
func initialized(f *conditionFacts) v1.PodCondition {
	s, c := f.Status, v1.PodCondition{Type: v1.PodInitialized, Status: v1.ConditionTrue}
	var unknown, incomplete []string
	for i := range f.Pod.Spec.InitContainers {
		ic := &f.Pod.Spec.InitContainers[i]
		switch st := find(s.InitContainerStatuses, ic.Name); {
		case st == nil:
			unknown = append(unknown, ic.Name)
		case podspec.IsSidecar(ic) && (st.Started == nil || !*st.Started), !podspec.IsSidecar(ic) && !st.Ready:
			incomplete = append(incomplete, ic.Name)
		}
	}
	switch was := Condition(f.Previous, v1.PodInitialized); {
	case s.Phase == v1.PodSucceeded && len(unknown) == 0:
		c.Reason = "PodCompleted"
	case was != nil && was.Status == v1.ConditionTrue:
	case len(s.InitContainerStatuses) == 0 && len(f.Pod.Spec.InitContainers) > 0:
		c.Status, c.Reason = v1.ConditionFalse, "UnknownContainerStatuses"
	case anyStarted(s.ContainerStatuses):
	case len(unknown)+len(incomplete) > 0:
		c.Status, c.Reason = v1.ConditionFalse, "ContainersNotInitialized"
		c.Message = unmetMessage(unknown, "incomplete", incomplete)
	}
	return c
}

// anyStarted reports whether a container runs or has run.
func anyStarted(list []v1.ContainerStatus) bool {
	for i := range list {
		if list[i].State.Running != nil || list[i].State.Terminated != nil {
			return true
		}
	}
	return false
}

// readyToStart returns the PodReadyToStartContainers condition: whether the pod has a usable sandbox
// (rule rt-25), and why not. If the pod was not inspected, the condition is unchanged.
func readyToStart(f *conditionFacts) v1.PodCondition {
	c := v1.PodCondition{Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue}
	if f.Observed == nil {
		if was := Condition(f.Previous, c.Type); was != nil {
			c.Status, c.Reason, c.Message = was.Status, was.Reason, was.Message
			return c
		}
	}
	if message := sandboxNotReady(f); message != "" {
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "PodSandboxNotReady", message
	}
	return c
}

// sandboxNotReady returns why the pod has no usable sandbox, in the words of the kubelet; empty if it
// has one.
func sandboxNotReady(f *conditionFacts) string {
	if f.Observed == nil {
		return "no pod sandbox exists"
	}
	switch podspec.SandboxProblemOf(f.Pod, f.Observed) {
	case 0:
		return ""
	case podspec.NoSandbox:
		return "no pod sandbox exists"
	case podspec.SeveralSandboxes:
		return "multiple pod sandboxes are ready and need to be reconciled"
	case podspec.SandboxNetworkMode:
		return "network namespace mode changed and sandbox needs to be recreated"
	case podspec.SandboxWithoutIP:
		return "pod sandbox has no IP address"
	default:
		return "pod sandbox is not ready"
	}
}
