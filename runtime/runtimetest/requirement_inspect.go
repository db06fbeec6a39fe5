package runtimetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// inspectRequirements are the requirements of [runtime.Lister] on side effects, on identifiers,
// on contexts, and on concurrent calls.
var inspectRequirements = []requirement{
	{
		name:     "InspectionHasNoSideEffects",
		text:     "A Lister changes nothing: an inspection neither restarts exited containers nor affects running ones.",
		contract: "Lister",
		cause:    "an inspection also reconciles, or restarts containers that the backend reports as failed",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long), named("short", t.suite.Containers.Exit(1)))
			t.sync(pod)
			want := t.await(pod.UID, "short has exited", exited("short"))
			for range 10 {
				t.listed(pod.UID)
				t.look(pod.UID)
			}
			t.pause(5 * t.suite.Timing.PollInterval)
			if got := t.look(pod.UID); format(got) != format(want) {
				t.Errorf("the pod was\n%s\nand after several inspections it is\n%s", describe(want), describe(got))
			}
		},
	},
	{
		name:     "KilledPodIsListed",
		text:     "Pods lists every pod that has a container or sandbox in the runtime, running or not: a killed pod is still listed, with its containers exited and no sandbox ready.",
		contract: "Lister.Pods",
		cause:    "only running objects are requested from the backend",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			t.up(pod)
			t.kill(pod, nil)
			p := t.listed(pod.UID)
			if p == nil {
				t.Fatal("Pods does not list a pod that was killed")
			}
			if len(p.Containers) != 1 || p.Containers[0].State != runtime.ContainerExited {
				t.Errorf("the list does not have exactly one exited container: %+v", p.Containers)
			}
			for _, sb := range p.Sandboxes {
				if sb.State == runtime.SandboxReady {
					t.Errorf("sandbox %s of a pod that was killed is listed as ready", sb.ID)
				}
			}
		},
	},
	{
		name:     "IDsAreUnique",
		text:     "The ID of a container or a sandbox is unique on the node and over time: other pods and later instances with the same names have other IDs.",
		contract: "Container.ID, Sandbox.ID, ContainerStatus.ID",
		cause:    "IDs are derived from names",
		check: func(t *checkT) {
			pods := []*v1.Pod{
				t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Containers.Exit(1))),
				t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Containers.Exit(1))),
			}
			seen := map[string]string{}
			for _, pod := range pods {
				s := t.syncUntil(pod, "flappy was restarted", restarted("flappy"))
				for _, c := range s.Containers {
					what := fmt.Sprintf("instance %d of %s in %s", c.RestartCount, c.Name, pod.UID)
					if other, ok := seen[c.ID]; ok || c.ID == "" {
						t.Errorf("%s has the ID %q, as has %s", what, c.ID, other)
					}
					seen[c.ID] = what
				}
				for _, sb := range s.Sandboxes {
					what := fmt.Sprintf("sandbox %d of %s", sb.Attempt, pod.UID)
					if other, ok := seen[sb.ID]; ok || sb.ID == "" {
						t.Errorf("%s has the ID %q, as has %s", what, sb.ID, other)
					}
					seen[sb.ID] = what
				}
			}
		},
	},
	{
		name:     "IPsAreThoseOfReadySandbox",
		text:     "PodStatus.IPs are those of the newest sandbox if it is ready, and empty if it is not.",
		contract: "PodStatus.IPs, SandboxStatus (rt-8)",
		cause:    "only Sandboxes[0].IPs is set; or addresses are cached and reported after the pod has lost them",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			s := t.up(pod)
			if len(s.IPs) == 0 && len(s.Sandboxes) > 0 && len(s.Sandboxes[0].IPs) > 0 {
				t.Fatalf("the newest sandbox has the IPs %v and PodStatus.IPs is empty: probes, the status of the pod and its environment use PodStatus.IPs; copy the IPs of Sandboxes[0] into it if that sandbox is ready", s.Sandboxes[0].IPs)
			}
			if len(s.Sandboxes) == 0 || fmt.Sprint(s.IPs) != fmt.Sprint(s.Sandboxes[0].IPs) {
				t.Errorf("the IPs are %v; the pod is\n%s\n\tand its sandboxes are %+v", s.IPs, describe(s), s.Sandboxes)
			}
			t.kill(pod, nil)
			if s = t.look(pod.UID); len(s.IPs) > 0 {
				t.Errorf("after KillPod the IPs are %v; the pod is\n%s", s.IPs, describe(s))
			}
		},
	},
	{
		name:     "InspectionObeysItsContext",
		text:     "When ctx is done Pods and PodStatus return. If they fail for that reason, their error is ctx's and the result is nil: containers missing from a partial list would be taken for removed.",
		contract: "Lister, Lister.Pods, errors of package runtime",
		cause:    "the backend's error is returned without ctx's, or a partial result is returned with the error",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			t.up(pod)
			past, cancelPast := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
			defer cancelPast()
			canceled, cancel := context.WithCancel(t.Context())
			cancel()
			for _, ctx := range []context.Context{past, canceled} {
				pods, err := t.rt.Pods(ctx)
				if err != nil && (!ended(err) || pods != nil) {
					t.Errorf("with a context that is done, Pods returned %d pods and %v", len(pods), err)
				}
				s, err := t.rt.PodStatus(ctx, pod.UID)
				if err != nil && (!ended(err) || s != nil) {
					t.Errorf("with a context that is done, PodStatus returned %v and %v", s, err)
				}
				if err == nil && (s == nil || len(s.Containers) != 1) {
					t.Errorf("with a context that is done, PodStatus returned no error and a partial result, %+v", s)
				}
			}
		},
	},
	{
		name:     "ListsAreConsistentDuringChanges",
		text:     "Lists are consistent at any time: while other pods are created and removed, every list has each pod once, and all pods that do not change, with their state.",
		contract: "Lister; package runtime, Concurrency",
		cause:    "the list is assembled from several reads between which the state changes, or from state in the middle of an update",
		check: func(t *checkT) {
			still := t.pod(v1.RestartPolicyAlways, named("a", t.suite.Containers.Long), named("b", t.suite.Containers.Long))
			t.up(still)
			want := fmt.Sprint(*t.listed(still.UID))
			var busy sync.WaitGroup
			var over atomic.Bool
			for range 2 {
				pods := []*v1.Pod{
					t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long)),
					t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long)),
				}
				busy.Go(func() {
					defer over.Store(true)
					for _, pod := range pods {
						if _, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod}); err != nil {
							t.Errorf("SyncPod: %v", err)
						}
						if err := t.rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}); err != nil {
							t.Errorf("KillPod: %v", err)
						}
					}
				})
			}
			defer busy.Wait()
			for n := 0; n < 20 || !over.Load(); n++ {
				pods, err := t.rt.Pods(t.Context())
				if err != nil {
					t.Fatalf("Pods: %v", err)
				}
				seen := map[any]bool{}
				for i, p := range pods {
					if p == nil || p.UID == "" {
						t.Fatalf("Pods[%d] is nil or has no UID: %+v", i, p)
					}
					if seen[p.UID] {
						t.Fatalf("Pods lists %s twice", p.UID)
					}
					seen[p.UID] = true
					for _, c := range p.Containers {
						if seen[c.ID] {
							t.Fatalf("Pods lists container %s twice", c.ID)
						}
						seen[c.ID] = true
					}
					if p.UID == still.UID && fmt.Sprint(*p) != want {
						t.Fatalf("a pod that was not changed was listed as\n\t%s\nand is listed as\n\t%v", want, *p)
					}
				}
				if !seen[still.UID] {
					t.Fatalf("a pod that was not changed is missing from the list, and Pods returned no error")
				}
				t.pause(t.suite.Timing.PollInterval / 4)
			}
		},
	},
	{
		name:     "ResultsShareNoMemory",
		text:     "The caller owns each result: the results of concurrent calls share no memory, except ContainerStatus.Resources.",
		contract: "Lister; ContainerStatus.Resources",
		cause:    "concurrent calls are merged into one, and its result is returned to all",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			t.up(pod)
			const callers = 4
			var statuses [callers]*runtime.PodStatus
			var lists [callers][]*runtime.Pod
			var looking sync.WaitGroup
			for i := range callers {
				looking.Go(func() {
					var err error
					if statuses[i], err = t.rt.PodStatus(t.Context(), pod.UID); err != nil {
						t.Errorf("PodStatus: %v", err)
					}
					if lists[i], err = t.rt.Pods(t.Context()); err != nil {
						t.Errorf("Pods: %v", err)
					}
				})
			}
			looking.Wait()
			owner := map[any]int{} // the caller that received the memory at an address
			own := func(caller int, what string, p any) {
				if other, ok := owner[p]; ok && other != caller {
					t.Errorf("two callers share %s", what)
				}
				owner[p] = caller
			}
			for i, s := range statuses {
				if s == nil {
					continue
				}
				own(i, "the status", s)
				for j := range s.IPs {
					own(i, "the list of IPs", &s.IPs[j])
				}
				for j := range s.Containers {
					own(i, "the list of containers", &s.Containers[j])
				}
				for j := range s.Sandboxes {
					own(i, "the list of sandboxes", &s.Sandboxes[j])
					for k := range s.Sandboxes[j].IPs {
						own(i, "the list of a sandbox's IPs", &s.Sandboxes[j].IPs[k])
					}
				}
			}
			for i, list := range lists {
				for j, p := range list {
					own(i, "the list of pods", &list[j])
					own(i, "a pod", p)
					for k := range p.Containers {
						own(i, "a pod's list of containers", &p.Containers[k])
					}
					for k := range p.Sandboxes {
						own(i, "a pod's list of sandboxes", &p.Sandboxes[k])
					}
				}
			}
		},
	},
}

func restarted(name string) func(*runtime.PodStatus) bool {
	return func(s *runtime.PodStatus) bool { return len(instances(s, name)) > 1 }
}
