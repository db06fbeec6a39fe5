package runtimetest

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// changeRequirements are those on replaced containers and sandboxes, on events, and
// on the cost of lists.
var changeRequirements = []requirement{
	{
		name:     "ChangedImageReplacesContainer",
		text:     "A running container with another image than in the spec is stopped and started again with the image of the spec, whatever the restart policy; the other containers are not changed.",
		contract: "Runtime.SyncPod: a container that runs as specified is never touched (rt-30)",
		cause:    "running containers are compared with the spec by name alone, or the whole pod is recreated",
		needs:    []string{"Containers.OtherImage"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyNever, named("changes", t.suite.Containers.Long), named("stays", t.suite.Containers.Long))
			was := t.up(pod)
			pod = pod.DeepCopy()
			pod.Spec.Containers[0].Image = t.suite.Containers.OtherImage
			first := t.container(was, "changes").ID
			s := t.syncUntil(pod, "changes runs with its other image", func(s *runtime.PodStatus) bool {
				return in(s, "changes", runtime.ContainerRunning) && t.container(s, "changes").ID != first
			})
			c := t.container(s, "changes")
			if c.Image != t.suite.Containers.OtherImage || c.RestartCount != 1 || c.SandboxID != was.Sandboxes[0].ID {
				t.Errorf("the new instance has image %q, restart count %d, and sandbox %s; the pod is\n%s", c.Image, c.RestartCount, c.SandboxID, describe(s))
			}
			for _, c := range instances(s, "changes")[1:] {
				if c.State != runtime.ContainerExited {
					t.Errorf("the instance with the old image was not stopped; the pod is\n%s", describe(s))
				}
			}
			if len(instances(s, "stays")) != 1 || !in(s, "stays", runtime.ContainerRunning) {
				t.Errorf("stays was changed; the pod is\n%s", describe(s))
			}
			t.syncThrice(pod)
			if again := t.look(pod.UID); t.container(again, "changes").ID != c.ID {
				t.Errorf("further calls of SyncPod replaced it again; the pod is\n%s", describe(again))
			}
		},
	},
	{
		name:     "TerminationMessageIsKept",
		text:     "The Message of a container ends with the text that it wrote to its termination message path; each instance has its own, which does not change later.",
		contract: "ContainerStatus.Message",
		cause:    "the file is read when the status is requested, and is the next instance's by then",
		needs:    []string{"Containers.Message"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("writes", t.suite.Containers.Message("out of luck")), named("silent", t.suite.Containers.Exit(1)), named("long", t.suite.Containers.Long))
			t.sync(pod)
			t.await(pod.UID, "writes and silent have exited", func(s *runtime.PodStatus) bool { return exited("writes")(s) && exited("silent")(s) })
			s := t.syncUntil(pod, "writes was restarted", restarted("writes"))
			for _, c := range s.Containers {
				if c.State == runtime.ContainerExited && strings.HasSuffix(strings.TrimSpace(c.Message), "out of luck") != (c.Name == "writes") {
					t.Errorf("the message of instance %d of %s is %q; the pod is\n%s", c.RestartCount, c.Name, c.Message, describe(s))
				}
				if c.State == runtime.ContainerRunning && c.Message != "" {
					t.Errorf("%s runs, and has the message %q", c.Name, c.Message)
				}
			}
		},
	},
	{
		name:     "LostSandboxIsReplaced",
		text:     "A pod whose sandbox is not ready gets a new one with the next attempt, in which its containers run; none continues to run in the old one.",
		contract: "Sandbox.State, Sandbox.Attempt; Runtime.SyncPod brings the pod closer to its spec (rt-41, rt-45)",
		cause:    "a sandbox is expected to exist as long as its pod, or its containers are not stopped",
		needs:    []string{"Backend.LoseSandbox"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			old := t.up(pod)
			if err := t.suite.Backend.LoseSandbox(t.T, t.rt, pod.UID); err != nil {
				t.Fatalf("Suite.Backend.LoseSandbox: %v", err)
			}
			t.await(pod.UID, "the sandbox is not ready", func(s *runtime.PodStatus) bool {
				return len(s.Sandboxes) > 0 && s.Sandboxes[0].State == runtime.SandboxNotReady
			})
			s := t.syncUntil(pod, "long runs in another sandbox", func(s *runtime.PodStatus) bool {
				return s.Sandboxes[0].ID != old.Sandboxes[0].ID && in(s, "long", runtime.ContainerRunning) && t.container(s, "long").SandboxID == s.Sandboxes[0].ID
			})
			if sb := s.Sandboxes[0]; sb.State != runtime.SandboxReady || sb.Attempt != old.Sandboxes[0].Attempt+1 {
				t.Errorf("the new sandbox is %v, attempt %d, after %d", sb.State, sb.Attempt, old.Sandboxes[0].Attempt)
			}
			for _, sb := range s.Sandboxes[1:] {
				if sb.State == runtime.SandboxReady {
					t.Errorf("two sandboxes are ready; the pod is\n%s", describe(s))
				}
			}
			for _, c := range s.Containers {
				if c.SandboxID != s.Sandboxes[0].ID && c.State == runtime.ContainerRunning {
					t.Errorf("%s still runs in the old sandbox; the pod is\n%s", c.ID, describe(s))
				}
			}
			t.syncThrice(pod)
			if again := t.look(pod.UID); again.Sandboxes[0].ID != s.Sandboxes[0].ID {
				t.Errorf("further calls of SyncPod created another sandbox; the pod is\n%s", describe(again))
			}
		},
	},
	{
		name:     "RestartAllContainersRestartsPod",
		text:     "When the exit of a container matches a rule with action RestartAllContainers, all containers of the pod are restarted in its sandbox, init containers first, with the next restart counts.",
		contract: "the API's meaning of containers[].restartPolicyRules (rt-140, rt-141, rt-143)",
		cause:    "the action is treated like Restart, or the sandbox is recreated as well",
		needs:    []string{"InitContainers"},
		check: func(t *checkT) {
			trigger := named("trigger", t.suite.Containers.Exit(42))
			trigger.RestartPolicy = new(v1.ContainerRestartPolicyNever)
			trigger.RestartPolicyRules = []v1.ContainerRestartRule{{
				Action:    v1.ContainerRestartRuleActionRestartAllContainers,
				ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
			}}
			pod := t.pod(v1.RestartPolicyNever, trigger, named("long", t.suite.Containers.Long))
			pod.Spec.InitContainers = []v1.Container{named("setup", t.suite.Containers.Exit(0))}
			was := t.syncUntil(pod, "long runs", func(s *runtime.PodStatus) bool { return in(s, "long", runtime.ContainerRunning) })
			setup, long := t.container(was, "setup").ID, t.container(was, "long").ID
			s := t.syncUntil(pod, "another instance of long runs", func(s *runtime.PodStatus) bool {
				return in(s, "long", runtime.ContainerRunning) && t.container(s, "long").ID != long
			})
			if c := s.Container("setup"); c == nil || c.ID == setup {
				t.Errorf("long was restarted, but not its init container; the pod is\n%s", describe(s))
			}
			if c := t.container(s, "long"); c.RestartCount < 1 {
				t.Errorf("its restart count is %d; the pod is\n%s", c.RestartCount, describe(s))
			}
			if len(s.Sandboxes) != 1 || s.Sandboxes[0].ID != was.Sandboxes[0].ID {
				t.Errorf("the sandbox was replaced; the pod was\n%s\nand is\n%s", describe(was), describe(s))
			}
		},
	},
	{
		name:     "EventsFollowVisibleChanges",
		text:     "An event follows the visible change: a caller that inspects the pod only after events observes the start, the exit and the removal of a container.",
		contract: "Watcher: if every change has an event after it can be observed, pleg lists rarely",
		cause:    "the event announces the request, or does not come from the source of the list; pleg relists more often for such a runtime",
		needs:    []string{"Watcher"},
		check: func(t *checkT) {
			w := t.watch()
			for try := 1; ; try++ { // changes before the watch began have no event
				pod := t.pod(v1.RestartPolicyNever, named("short", t.suite.Containers.Exit(0)), named("long", t.suite.Containers.Long))
				t.sync(pod)
				if w.notified(pod.UID, t.suite.Timing.Timeout/5, exited("short")) {
					t.kill(pod, nil)
					if !w.notified(pod.UID, t.suite.Timing.Timeout, func(s *runtime.PodStatus) bool { return !s.Running() }) {
						t.Errorf("no event after the containers stopped: no inspection after an event observed it; the pod is\n%s", describe(t.look(pod.UID)))
					}
					gc, ok := compose.As[runtime.GarbageCollector](t.rt)
					if !ok {
						return
					}
					w.drop() // further events of the stop
					policy := runtime.GCPolicy{MaxPerContainer: -1, Keep: func(uid types.UID) bool { return uid != pod.UID }}
					if err := gc.CollectGarbage(t.Context(), policy); err != nil {
						t.Fatalf("CollectGarbage: %v", err)
					}
					if !w.notified(pod.UID, t.suite.Timing.Timeout, func(s *runtime.PodStatus) bool { return s.Pod() == nil }) {
						t.Errorf("no event after the removal of the pod: no inspection after an event observed it; the pod is\n%s", describe(t.look(pod.UID)))
					}
					return
				}
				if try == 3 {
					t.Errorf("no event after the exit of short: no inspection after an event observed it; the pod is\n%s", describe(t.look(pod.UID)))
					return
				}
			}
		},
	},
	{
		name:     "ListCostIsIndependentOfPodCount",
		text:     "Listing many pods takes as many calls of the backend as listing few.",
		contract: "Lister.Pods is called about once per second; Pod: cheap to obtain",
		cause:    "each pod, or each container, is inspected for the list",
		needs:    []string{"Backend.Calls"},
		check: func(t *checkT) {
			count := func() int {
				before := t.suite.Backend.Calls(t.rt)
				if _, err := t.rt.Pods(t.Context()); err != nil {
					t.Fatalf("Pods: %v", err)
				}
				return t.suite.Backend.Calls(t.rt) - before
			}
			t.up(t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long)))
			few := count()
			for range 2 {
				t.up(t.pod(v1.RestartPolicyAlways, named("a", t.suite.Containers.Long), named("b", t.suite.Containers.Long)))
			}
			if many := count(); many > few {
				t.Errorf("with one pod a list takes %d calls of the backend, with three pods %d", few, many)
			}
		},
	},
}
