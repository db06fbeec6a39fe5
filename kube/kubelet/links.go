package kubelet

import (
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

// pods gives subsystems access to the pods of the agent. Its methods must not be called
// before the agent is connected.
type pods struct{ agent *link[agent.Agent] }

func (p pods) loop() *podworker.Loop       { return p.agent.get().Loop() }
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
	pod, _ := p.loop().Pod(uid)
	return pod
}

// desired returns the desired pods that have not terminated.
func (p pods) desired() (all []*v1.Pod) {
	for _, pod := range p.loop().Pods() {
		if p.loop().State(pod.UID) < podworker.Cleaning {
			all = append(all, pod)
		}
	}
	return all
}

// running returns the pods that may have running containers.
func (p pods) running() (all []*v1.Pod) {
	for _, s := range p.workers().States() {
		if s.Pod != nil && s.State < podworker.Cleaning {
			all = append(all, s.Pod)
		}
	}
	return all
}

// leaving reports whether a pod is no longer desired and has not terminated.
func (p pods) leaving(uid types.UID) bool {
	s, known := p.workers().State(uid)
	return known && s >= podworker.Stopping && s < podworker.Finished && p.pod(uid) == nil
}

// terminated reports whether no container of a pod runs or will run.
func (p pods) terminated(uid types.UID) bool {
	s, known := p.workers().State(uid)
	return known && s >= podworker.Cleaning
}

// cleaned reports whether nothing of a pod is left, including its volumes.
func (p pods) cleaned(uid types.UID) bool {
	s, known := p.workers().State(uid)
	return !known || s == podworker.Finished
}
