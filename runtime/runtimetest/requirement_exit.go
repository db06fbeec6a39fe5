package runtimetest

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// exitRequirements are those on what follows when a container exits by itself.
var exitRequirements = []requirement{
	{
		name:     "ExitCodeAndTimesAreReported",
		text:     "A container that has exited is reported with its exit code and its times.",
		contract: "ContainerStatus.ExitCode, StartedAt, FinishedAt",
		cause:    "the backend's state is mapped to running or not, and its exit code is dropped",
		check: func(t *checkT) {
			var containers []v1.Container
			codes := map[string]int32{}
			for _, code := range []int32{0, 1, 42} {
				name := fmt.Sprintf("exit-%d", code)
				codes[name] = code
				containers = append(containers, named(name, t.suite.Containers.Exit(code)))
			}
			pod := t.pod(v1.RestartPolicyNever, containers...)
			t.sync(pod)
			for name, code := range codes {
				c := t.container(t.await(pod.UID, name+" has exited", exited(name)), name)
				if c.ExitCode != code {
					t.Errorf("%s is reported with exit code %d", name, c.ExitCode)
				}
				if c.StartedAt.Before(c.CreatedAt) || c.FinishedAt.Before(c.StartedAt) || c.CreatedAt.IsZero() {
					t.Errorf("%s was created %v, started %v, finished %v", name, c.CreatedAt, c.StartedAt, c.FinishedAt)
				}
			}
		},
	},
	{
		name:     "RestartCreatesNewInstance",
		text:     "A restart creates a new instance with a new ID and the next restart count; the exited one is kept, so that its exit can be read.",
		contract: "package runtime, Vocabulary; ContainerStatus.RestartCount",
		cause:    "a container is restarted in place, which overwrites its last exit",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Containers.Exit(7)), named("long", t.suite.Containers.Long))
			t.sync(pod)
			first := t.await(pod.UID, "flappy has exited", exited("flappy"))
			s := t.syncUntil(pod, "flappy was restarted", func(s *runtime.PodStatus) bool { return len(instances(s, "flappy")) > 1 })
			all := instances(s, "flappy")
			newer, older := all[len(all)-2], all[len(all)-1]
			if older.ID != t.container(first, "flappy").ID || older.State != runtime.ContainerExited || older.ExitCode != 7 {
				t.Errorf("the exited instance was not kept; the pod is\n%s", describe(s))
			}
			if newer.ID == older.ID || newer.RestartCount != older.RestartCount+1 || older.RestartCount != 0 {
				t.Errorf("the restart counts are not 0 and 1, or the IDs are equal; the pod is\n%s", describe(s))
			}
			if t.container(s, "long").ID != t.container(first, "long").ID {
				t.Errorf("the other container was restarted as well; the pod was\n%s\nand is\n%s", describe(first), describe(s))
			}
		},
	},
	{
		name:     "RestartPolicyNeverIsObeyed",
		text:     "With restartPolicy Never an exited container is not restarted.",
		contract: "the API's meaning of restartPolicy (rt-34)",
		cause:    "the backend restarts containers by itself",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyNever, named("ok", t.suite.Containers.Exit(0)), named("bad", t.suite.Containers.Exit(1)), named("long", t.suite.Containers.Long))
			t.syncUntil(pod, "ok has exited", exited("ok"))
			t.syncUntil(pod, "bad has exited", exited("bad"))
			t.syncThrice(pod)
			if s := t.look(pod.UID); len(s.Containers) != 3 || !in(s, "long", runtime.ContainerRunning) {
				t.Errorf("the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "RestartPolicyOnFailureIsObeyed",
		text:     "With restartPolicy OnFailure a container that failed is restarted, one that succeeded is not.",
		contract: "the API's meaning of restartPolicy (rt-34)",
		cause:    "the exit code is ignored, or the backend restarts containers by itself",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyOnFailure, named("ok", t.suite.Containers.Exit(0)), named("bad", t.suite.Containers.Exit(1)), named("long", t.suite.Containers.Long))
			t.syncUntil(pod, "ok has exited", exited("ok"))
			t.syncUntil(pod, "bad was restarted", func(s *runtime.PodStatus) bool { return len(instances(s, "bad")) > 1 })
			if s := t.look(pod.UID); len(instances(s, "ok")) != 1 {
				t.Errorf("ok was restarted; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "CompletedPodIsNotChanged",
		text:     "A pod whose containers have all terminated is not changed by further calls of SyncPod, with or without a sandbox.",
		contract: "Runtime.SyncPod is idempotent (rt-41, rt-43, rt-50)",
		cause:    "a pod without a ready sandbox always gets a new one",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyNever, named("ok", t.suite.Containers.Exit(0)))
			want := t.syncUntil(pod, "ok has exited", exited("ok"))
			t.syncThrice(pod)
			if res := t.sync(pod); len(res.Actions) > 0 {
				t.Errorf("the fourth SyncPod of a completed pod did %+v", res.Actions)
			}
			got := t.look(pod.UID)
			if len(got.Sandboxes) != len(want.Sandboxes) || len(got.Containers) != 1 || got.Containers[0].ID != want.Containers[0].ID {
				t.Errorf("the pod was\n%s\nand is\n%s", describe(want), describe(got))
			}
		},
	},
	{
		name:     "ReportedExitDoesNotChange",
		text:     "A reported exit does not change: its code, reason and times remain the same through inspections, syncs, restarts of other containers, and the termination of the pod.",
		contract: "package runtime, Vocabulary; ContainerStatus.FinishedAt, ExitCode, Reason",
		cause:    "an exit without a time in the backend gets the time of the inspection, or the termination of the pod overwrites the exits of its containers",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyOnFailure, named("done", t.suite.Containers.Exit(0)), named("flappy", t.suite.Containers.Exit(3)), named("long", t.suite.Containers.Long))
			t.sync(pod)
			t.await(pod.UID, "done has exited", exited("done"))
			seen := map[string]string{}
			look := func(when string) {
				t.Helper()
				s := t.look(pod.UID)
				found := 0
				for _, c := range s.Containers {
					if c.State != runtime.ContainerExited {
						continue
					}
					is := fmt.Sprintf("exited with %d (%s), started %v, finished %v", c.ExitCode, c.Reason, c.StartedAt.UnixNano(), c.FinishedAt.UnixNano())
					if was, ok := seen[c.ID]; ok {
						found++
						if was != is {
							t.Errorf("%s, instance %d of %s was reported as\n\t%s\nand is reported as\n\t%s", when, c.RestartCount, c.Name, was, is)
						}
					}
					seen[c.ID] = is
				}
				for id := range seen {
					if found < len(seen) && !slices.ContainsFunc(s.Containers, func(c runtime.ContainerStatus) bool { return c.ID == id && c.State == runtime.ContainerExited }) {
						t.Errorf("%s, the exit of %s is not reported any more; the pod is\n%s", when, id, describe(s))
					}
				}
			}
			look("at first")
			t.pause(5 * t.suite.Timing.PollInterval)
			look("some time later")
			t.syncUntil(pod, "flappy was restarted", restarted("flappy"))
			look("after a restart")
			t.kill(pod, nil)
			look("after KillPod")
			t.kill(pod, new(int64(0)))
			look("after the second KillPod")
		},
	},
	{
		name:     "ContainerRestartPolicyOverridesPodPolicy",
		text:     "A container's own restartPolicy takes precedence over the pod's.",
		contract: "the API's meaning of containers[].restartPolicy (rt-33)",
		cause:    "the pod's policy is passed to the backend for all containers",
		check: func(t *checkT) {
			again, once := named("again", t.suite.Containers.Exit(0)), named("once", t.suite.Containers.Exit(1))
			again.RestartPolicy, once.RestartPolicy = new(v1.ContainerRestartPolicyAlways), new(v1.ContainerRestartPolicyNever)
			for policy, c := range map[v1.RestartPolicy]v1.Container{v1.RestartPolicyNever: again, v1.RestartPolicyAlways: once} {
				pod := t.pod(policy, c, named("long", t.suite.Containers.Long))
				if c.Name == "again" {
					t.syncUntil(pod, "again was restarted", restarted("again"))
					continue
				}
				t.syncUntil(pod, "once has exited", exited("once"))
				t.syncThrice(pod)
				if s := t.look(pod.UID); len(instances(s, "once")) != 1 {
					t.Errorf("once was restarted; the pod is\n%s", describe(s))
				}
			}
		},
	},
	{
		name:     "RestartPolicyRulesAreObeyed",
		text:     "A rule with action Restart that matches the exit code restarts the container whatever its policy is; for other exit codes the policy applies.",
		contract: "the API's meaning of containers[].restartPolicyRules (rt-33)",
		cause:    "rules are ignored",
		check: func(t *checkT) {
			rule := func(c v1.Container) v1.Container {
				c.RestartPolicy = new(v1.ContainerRestartPolicyNever)
				c.RestartPolicyRules = []v1.ContainerRestartRule{{
					Action:    v1.ContainerRestartRuleActionRestart,
					ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
				}}
				return c
			}
			pod := t.pod(v1.RestartPolicyNever, rule(named("matches", t.suite.Containers.Exit(42))), rule(named("other", t.suite.Containers.Exit(1))), named("long", t.suite.Containers.Long))
			t.syncUntil(pod, "other has exited", exited("other"))
			t.syncUntil(pod, "matches was restarted", restarted("matches"))
			if s := t.look(pod.UID); len(instances(s, "other")) != 1 {
				t.Errorf("other was restarted; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "RestartCountsSurviveAgentRestart",
		text:     "Restart counts and exits survive the restart of the agent: the next instance has the next count, with or without a status passed by the caller.",
		contract: "Lister: answers from the runtime; ContainerStatus.RestartCount",
		cause:    "restarts are counted in memory",
		needs:    []string{"Backend.Reopen"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Containers.Exit(3)), named("long", t.suite.Containers.Long))
			t.sync(pod)
			want := t.await(pod.UID, "flappy has exited", exited("flappy"))
			t.rt = t.suite.Backend.Reopen(t.T, t.rt)
			last := t.container(want, "flappy")
			s := t.syncUntil(pod, "flappy was restarted after the agent was", func(s *runtime.PodStatus) bool {
				return t.container(s, "flappy").ID != last.ID
			})
			if c := t.container(s, "flappy"); c.RestartCount != last.RestartCount+1 {
				t.Errorf("the restart count was %d and is %d; the pod is\n%s", last.RestartCount, c.RestartCount, describe(s))
			}
			if t.container(s, "long").ID != t.container(want, "long").ID {
				t.Errorf("long was not left alone; the pod is\n%s", describe(s))
			}
		},
	},
}
