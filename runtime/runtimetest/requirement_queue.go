package runtimetest

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// queueRequirements apply to a runtime that queues starts. They use the runtime as
// it is, not one that waits.
var queueRequirements = []requirement{
	{
		name:     "QueuedContainerIsListed",
		text:     "When SyncPod has accepted a start, the container is listed in the state created until it runs: further calls of SyncPod do not queue it again, and it keeps its ID when it starts.",
		contract: "Suite.Queued; Runtime.SyncPod: never starts a second instance of a container",
		cause:    "a queued container is listed only when it runs, so that each SyncPod in between queues another one",
		needs:    []string{"Queued"},
		check: func(t *checkT) {
			rt := t.rt.(waiting).Runtime
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			var first string
			for n := range 3 {
				if res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod}); err != nil {
					t.Fatalf("SyncPod: %v", err)
				} else if n > 0 && len(res.Actions) > 0 {
					t.Errorf("SyncPod of a pod whose container is queued or runs did %+v", res.Actions)
				}
				s := t.look(pod.UID)
				c := s.Container("long")
				if c == nil {
					t.Fatalf("SyncPod returned nil and the container is not listed: it must be in the state created while its start is queued; the pod is\n%s", describe(s))
				}
				if c.State == runtime.ContainerCreated && !c.StartedAt.IsZero() {
					t.Errorf("the container is queued and has the start time %v", c.StartedAt)
				}
				first = c.ID
			}
			s := t.await(pod.UID, "long runs", func(s *runtime.PodStatus) bool { return in(s, "long", runtime.ContainerRunning) })
			if all := instances(s, "long"); len(all) != 1 || all[0].ID != first {
				t.Errorf("the queued container had the ID %s; the pod is\n%s", first, describe(s))
			}
		},
	},
	{
		name:     "KillCancelsQueuedStart",
		text:     "KillPod cancels queued starts: when it returns nil no container of the pod is queued, and none starts later.",
		contract: "Suite.Queued; Runtime.KillPod: it returns nil only when nothing of the pod runs",
		cause:    "KillPod stops only running containers, and the queue starts the others later",
		needs:    []string{"Queued"},
		check: func(t *checkT) {
			rt := t.rt.(waiting).Runtime
			queue := func() *v1.Pod {
				pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
				if _, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod}); err != nil {
					t.Fatalf("SyncPod: %v", err)
				}
				return pod
			}
			killed := queue()
			t.kill(killed, nil)
			idle := func(when string) {
				t.Helper()
				for _, c := range t.look(killed.UID).Containers {
					if c.State != runtime.ContainerExited {
						t.Fatalf("%s container %s (%s) is %v: its start was not canceled; the pod is\n%s", when, c.Name, c.ID, c.State, describe(t.look(killed.UID)))
					}
				}
			}
			idle("after KillPod returned nil,")
			// A pod that is queued later shows that the queue is past the first.
			later := queue()
			t.await(later.UID, "long runs", func(s *runtime.PodStatus) bool { return in(s, "long", runtime.ContainerRunning) })
			idle("after a pod that was queued later runs,")
		},
	},
}
