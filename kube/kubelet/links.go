package kubelet

import (
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// A link gives access to a component that is constructed after its user. It closes the
// only cycles of the construction: subsystems that the agent calls query its pods, the
// API objects that volumes read notify the volumes, and subsystems update the node status.
// New connects each link once, before anything runs.
type link[T any] struct{ p atomic.Pointer[T] }

func (l *link[T]) connect(to *T) { l.p.Store(to) }

// get returns the component; nil before it is connected.
func (l *link[T]) get() *T { return l.p.Load() }

// pods are the pods of the node, as subsystems need them.
type pods struct {
	*podworker.Table
	agent *link[agent.Agent]
}

func (p pods) workers() *podworker.Workers { return p.agent.get().Workers() }

// listed returns the pods of the runtime as PLEG has cached them; false if it has not listed them, or
// not lately.
func (p pods) listed() ([]*runtime.Pod, bool) {
	a := p.agent.get()
	if a == nil || a.PLEG().Healthy() != nil {
		return nil, false
	}
	return a.PLEG().Pods(), true
}

// pod returns a desired pod; nil if there is none.
func (p pods) pod(uid types.UID) *v1.Pod {
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
	return known && s >= podworker.Stopping && s < podworker.Finished && p.pod(uid) == nil
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
