package kubelet

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
)

// pods are the pods of the node, as subsystems need them.
type pods struct{ *podworker.Table }

// desiredPod returns a desired pod; nil if there is none.
func (p pods) desiredPod(uid types.UID) *v1.Pod {
	pod, _ := p.Pod(uid)
	return pod
}

// active returns the desired pods that have not terminated.
func (p pods) active() []*v1.Pod {
	return slices.DeleteFunc(p.Desired(), func(pod *v1.Pod) bool { return p.terminated(pod.UID) })
}

// leaving reports whether a pod is no longer desired and has not terminated.
func (p pods) leaving(uid types.UID) bool {
	s, known := p.State(uid)
	return known && s >= podworker.Stopping && s < podworker.Finished && p.desiredPod(uid) == nil
}

// terminated reports whether no container of a pod runs or will run.
func (p pods) terminated(uid types.UID) bool {
	s, known := p.State(uid)
	return known && s >= podworker.Cleaning
}

// cleaned reports whether nothing of a pod is left, including its volumes.
func (p pods) cleaned(uid types.UID) bool {
	s, known := p.State(uid)
	return !known || s == podworker.Finished
}
