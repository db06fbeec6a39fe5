package sim

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/status"
)

// A ClientFunc returns the source and the sink of an agent. source delivers the pods of the API, and sink
// applies writes to it, both without latency and faults. Each request of the client that writes must go
// through a.Call, with the name of a method of the sink and the UID of the pod.
type ClientFunc func(a *Agent, source podsource.PodSource, sink status.Sink) (podsource.PodSource, status.Sink, error)

// A sink is the API server's status endpoint as one agent calls it, with latency and faults.
type sink struct {
	writes
}

func (s sink) UpdatePodStatus(ctx context.Context, pod *v1.Pod, status v1.PodStatus) error {
	return s.call(ctx, Call{Method: "UpdatePodStatus", UID: pod.UID}, func() error { return s.writes.UpdatePodStatus(ctx, pod, status) })
}

func (s sink) DeletePod(ctx context.Context, pod *v1.Pod) error {
	return s.call(ctx, Call{Method: "DeletePod", UID: pod.UID}, func() error { return s.writes.DeletePod(ctx, pod) })
}

// A writes applies the writes of one agent to the API, and records them.
type writes struct {
	run   *run
	agent *Agent
}

func (s writes) UpdatePodStatus(ctx context.Context, pod *v1.Pod, status v1.PodStatus) error {
	if !s.run.note(Entry{Kind: StatusUpdated, Agent: s.agent.agent, Pod: pod.Name, UID: pod.UID, Object: pod, Status: status.DeepCopy()}) {
		return context.Canceled
	}
	return s.run.store.UpdatePodStatus(ctx, pod, status)
}

func (s writes) DeletePod(ctx context.Context, pod *v1.Pod) error {
	if !s.run.note(Entry{Kind: DeletePodCalled, Agent: s.agent.agent, Pod: pod.Name, UID: pod.UID, Object: pod}) {
		return context.Canceled
	}
	before, _ := s.run.store.get(pod.UID)
	err := s.run.store.DeletePod(ctx, pod)
	if after, _ := s.run.store.get(pod.UID); before != nil && after == nil {
		s.run.note(Entry{Kind: PodRemoved, Pod: pod.Name, UID: pod.UID, Object: before})
	}
	return err
}
