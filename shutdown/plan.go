package shutdown

import (
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// What others read of a shutdown, in the kubelet's words.
const (
	// Reason and Message of a pod that was ended (sh-9), and of its condition
	// DisruptionTarget.
	Reason  = "Terminated"
	Message = "Pod was terminated in response to imminent node shutdown."

	// NodeShutdown is the reason of a pod that came too late (sh-6).
	NodeShutdown        = "NodeShutdown"
	NodeShutdownMessage = "Pod was rejected as the node is shutting down."

	// EventReason is that of the node's events (sh-5).
	EventReason   = "Shutdown"
	eventShutdown = "Shutdown manager detected shutdown event"
	eventCancel   = "Shutdown manager detected shutdown cancellation"
)

// ErrShuttingDown is what keeps a node from being ready meanwhile (ns-10).
var ErrShuttingDown = errors.New("node is shutting down")

// Ending is what the status of a pod says that was ended (sh-9). One that has
// succeeded before stays so.
func Ending() runtime.Termination {
	return runtime.Termination{Failed: true, Reason: Reason, Message: Message, Disruption: Message}
}

// A Step is pods that end at the same time.
type Step struct {
	Group
	Pods []*v1.Pod
}

// Plan returns who ends when: the groups by ascending priority, with the pods of
// each; those without any are left out (sh-7).
func (p Policy) Plan(pods []*v1.Pod) []Step {
	groups := p.sorted()
	if len(groups) == 0 {
		return nil
	}
	steps := make([]Step, len(groups))
	for i, g := range groups {
		steps[i].Group = g
	}
	for _, pod := range pods {
		i := groupOf(groups, pod)
		steps[i].Pods = append(steps[i].Pods, pod)
	}
	filled := steps[:0]
	for _, s := range steps {
		if len(s.Pods) > 0 {
			filled = append(filled, s)
		}
	}
	return filled
}

// groupOf is the last of the sorted groups whose priority the pod has; below all of
// them the first (sh-3).
func groupOf(groups []Group, pod *v1.Pod) int {
	var priority int32
	if pod.Spec.Priority != nil {
		priority = *pod.Spec.Priority
	}
	at := 0
	for i, g := range groups {
		if g.Priority <= priority {
			at = i
		}
	}
	return at
}

// Grace is the seconds that a pod has to end where there is so much time: its own
// grace period, if that is less (sh-8).
func Grace(pod *v1.Pod, time time.Duration) int64 {
	seconds := int64(max(time, 0).Seconds())
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		return min(*own, seconds)
	}
	return seconds
}
