package runtimetest

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// garbageRequirements are the requirements of [runtime.GarbageCollector].
var garbageRequirements = []requirement{
	{
		name:     "GarbageCollectionKeepsNewestInstances",
		text:     "CollectGarbage keeps MaxPerContainer exited instances of each container, the newest ones, and all running ones; instances younger than MinAge are kept.",
		contract: "GarbageCollector.CollectGarbage, GCPolicy (rt-128 … rt-130)",
		cause:    "instances are sorted in the wrong order, or counted over all containers of the pod",
		needs:    []string{"GarbageCollector"},
		alone:    true,
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Containers.Exit(1)), named("long", t.suite.Containers.Long))
			s := t.syncUntil(pod, "flappy has exited twice", func(s *runtime.PodStatus) bool {
				return len(instances(s, "flappy")) > 1 && exited("flappy")(s)
			})
			all := instances(s, "flappy")
			t.collect(runtime.GCPolicy{MinAge: time.Hour})
			if young := t.look(pod.UID); len(instances(young, "flappy")) != len(all) {
				t.Errorf("instances younger than MinAge were removed; the pod was\n%s\nand is\n%s", describe(s), describe(young))
			}
			t.collect(runtime.GCPolicy{MaxPerContainer: 1})
			s = t.look(pod.UID)
			if left := instances(s, "flappy"); len(left) != 1 || left[0].ID != all[0].ID {
				t.Errorf("not the newest instance, and it alone, was kept; the pod is\n%s", describe(s))
			}
			if !in(s, "long", runtime.ContainerRunning) {
				t.Errorf("a container that ran does not run any more; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "GarbageCollectionRemovesDeletedPods",
		text:     "CollectGarbage removes everything that does not run of pods for which Keep returns false, and nothing of others.",
		contract: "GCPolicy.Keep (rt-129, rt-133)",
		cause:    "Keep is not called, or the sandbox of a removed pod is kept",
		needs:    []string{"GarbageCollector"},
		alone:    true,
		check: func(t *checkT) {
			gone := t.pod(v1.RestartPolicyNever, named("short", t.suite.Containers.Exit(0)))
			kept := t.pod(v1.RestartPolicyNever, named("short", t.suite.Containers.Exit(0)))
			for _, pod := range []*v1.Pod{gone, kept} {
				t.syncUntil(pod, "short has exited", exited("short"))
				t.kill(pod, nil)
			}
			t.collect(runtime.GCPolicy{MaxPerContainer: -1, Keep: func(uid types.UID) bool { return uid != gone.UID }})
			if s := t.look(gone.UID); s.Pod() != nil {
				t.Errorf("the removed pod still is\n%s", describe(s))
			}
			if p := t.listed(gone.UID); p != nil {
				t.Errorf("the removed pod is listed: %+v", *p)
			}
			if s := t.look(kept.UID); s.Container("short") == nil {
				t.Errorf("the other pod lost its container; it is\n%s", describe(s))
			}
		},
	},
	{
		name:     "GarbageCollectionKeepsRunningContainers",
		text:     "CollectGarbage removes only exited containers and sandboxes that are not ready: under the strictest policy running containers and their restart counts are not affected.",
		contract: "GarbageCollector.CollectGarbage (rt-128, rt-75); ContainerStatus.RestartCount",
		cause:    "a pod is removed as a whole, or counts are derived from the remaining instances",
		needs:    []string{"GarbageCollector"},
		alone:    true,
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Containers.Exit(1)), named("long", t.suite.Containers.Long))
			t.sync(pod)
			s := t.await(pod.UID, "flappy has exited", exited("flappy"))
			last := t.container(s, "flappy").RestartCount
			t.collect(runtime.GCPolicy{MaxPerContainer: 0, MaxContainers: 1})
			left := t.look(pod.UID)
			if !in(left, "long", runtime.ContainerRunning) || t.container(left, "long").ID != t.container(s, "long").ID || len(left.Sandboxes) != 1 {
				t.Errorf("the pod was\n%s\nand after garbage was collected is\n%s", describe(s), describe(left))
			}
			s = t.syncUntil(pod, "flappy was restarted", func(s *runtime.PodStatus) bool {
				c := s.Container("flappy")
				return c != nil
			})
			if c := t.container(s, "flappy"); c.RestartCount != last+1 {
				t.Errorf("the restart count was %d and is %d", last, c.RestartCount)
			}
		},
	},
	{
		name:     "GarbageCollectionObeysMaxContainers",
		text:     "MaxContainers is the number of exited instances kept on the node, the newest ones; zero and negative values mean no limit.",
		contract: "GCPolicy.MaxContainers (rt-130)",
		cause:    "the limit is applied per pod, or running containers are counted as well",
		needs:    []string{"GarbageCollector"},
		alone:    true,
		check: func(t *checkT) {
			var pods []*v1.Pod
			for range 3 {
				pod := t.pod(v1.RestartPolicyNever, named("short", t.suite.Containers.Exit(0)), named("brief", t.suite.Containers.Exit(1)))
				pods = append(pods, pod)
				t.sync(pod)
			}
			for _, pod := range pods {
				t.await(pod.UID, "both have exited", func(s *runtime.PodStatus) bool { return exited("short")(s) && exited("brief")(s) })
				t.kill(pod, nil)
			}
			dead := func() (n int) {
				list, err := t.rt.Pods(t.Context())
				if err != nil {
					t.Fatalf("Pods: %v", err)
				}
				for _, p := range list {
					for _, c := range p.Containers {
						if c.State == runtime.ContainerExited {
							n++
						}
					}
				}
				return n
			}
			before := dead()
			t.collect(runtime.GCPolicy{MaxPerContainer: -1, MaxContainers: 0})
			if n := dead(); n != before {
				t.Errorf("without a limit %d dead containers became %d", before, n)
			}
			t.collect(runtime.GCPolicy{MaxPerContainer: -1, MaxContainers: 4})
			if n := dead(); n > 4 {
				t.Errorf("of %d dead containers %d are left; 4 may be", before, n)
			}
		},
	},
}

func (t *checkT) collect(policy runtime.GCPolicy) {
	t.Helper()
	if err := as[runtime.GarbageCollector](t).CollectGarbage(t.Context(), policy); err != nil {
		t.Fatalf("CollectGarbage: %v", err)
	}
}
