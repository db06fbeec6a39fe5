package shutdown

import (
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// ReasonNodeShutdown is the reason of a pod that is rejected during a shutdown.
const ReasonNodeShutdown = "NodeShutdown"

// The kubelet's reasons and messages.
const (
	reasonTerminated    = "Terminated" // of the pod status and its condition DisruptionTarget
	messageTerminated   = "Pod was terminated in response to imminent node shutdown."
	messageNodeShutdown = "Pod was rejected as the node is shutting down."

	eventReason   = "Shutdown" // of the node's events
	eventShutdown = "Shutdown manager detected shutdown event"
	eventCancel   = "Shutdown manager detected shutdown cancellation"
)

// ErrShuttingDown is the reason why the node is not ready during a shutdown.
var ErrShuttingDown = errors.New("node is shutting down")

// Termination returns the reason and message of the pod's final status. A pod that has already
// succeeded keeps its status.
func (Kill) Termination() runtime.Termination {
	return runtime.Termination{Failed: true, Reason: reasonTerminated, Message: messageTerminated, Disruption: messageTerminated}
}

// A Batch has the pods of a group, which are terminated concurrently.
type Batch struct {
	Group
	Pods []*v1.Pod
}

// Plan returns the pods of each group in the order of their termination: groups by ascending
// priority, without empty ones.
func (p Policy) Plan(pods []*v1.Pod) []Batch {
	groups := p.sorted()
	if len(groups) == 0 {
		return nil
	}
	batches := make([]Batch, len(groups))
	for i, g := range groups {
		batches[i].Group = g
	}
	for _, pod := range pods {
		i := groupOf(groups, pod)
		batches[i].Pods = append(batches[i].Pods, pod)
	}
	filled := batches[:0]
	for _, s := range batches {
		if len(s.Pods) > 0 {
			filled = append(filled, s)
		}
	}
	return filled
}

// groupOf returns the index of the last of the sorted groups whose priority is not above the
// pod's; the first group if all are.
func groupOf(groups []Group, pod *v1.Pod) int {
	priority := podspec.Priority(pod)
	at := 0
	for i, g := range groups {
		if g.Priority <= priority {
			at = i
		}
	}
	return at
}

// gracePeriodSeconds returns the grace period of a pod in seconds if the given time remains: its own
// grace period if that is shorter.
func gracePeriodSeconds(pod *v1.Pod, remaining time.Duration) int64 {
	seconds := int64(max(remaining, 0).Seconds())
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		return min(*own, seconds)
	}
	return seconds
}
