package runtimetest

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// exitPromises are those on what follows when a container exits by itself.
var exitPromises = []promise{
	{
		name: "ExitIsSeen",
		says: "A container that has exited is shown with its exit code and its times.",
		check: func(t *trial) {
			var containers []v1.Container
			codes := map[string]int32{}
			for _, code := range []int32{0, 1, 42} {
				name := fmt.Sprintf("exit-%d", code)
				codes[name] = code
				containers = append(containers, named(name, t.suite.Exit(code)))
			}
			pod := t.pod(v1.RestartPolicyNever, containers...)
			t.sync(pod)
			for name, code := range codes {
				c := t.container(t.await(pod.UID, name+" has exited", exited(name)), name)
				if c.ExitCode != code {
					t.Errorf("%s is shown to have exited with %d", name, c.ExitCode)
				}
				if c.StartedAt.Before(c.CreatedAt) || c.FinishedAt.Before(c.StartedAt) || c.CreatedAt.IsZero() {
					t.Errorf("%s was created %v, started %v, finished %v", name, c.CreatedAt, c.StartedAt, c.FinishedAt)
				}
			}
		},
	},
	{
		name: "RestartMakesANewInstance",
		says: "A restart makes a new instance with a new ID and a restart count one higher; the exited one stays, so that its exit can be read.",
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Exit(7)), named("long", t.suite.Long))
			t.sync(pod)
			first := t.await(pod.UID, "flappy has exited", exited("flappy"))
			s := t.syncUntil(pod, "flappy was restarted", func(s *runtime.PodStatus) bool { return len(instances(s, "flappy")) > 1 })
			all := instances(s, "flappy")
			newer, older := all[len(all)-2], all[len(all)-1]
			if older.ID != t.container(first, "flappy").ID || older.State != runtime.ContainerExited || older.ExitCode != 7 {
				t.Errorf("the exited instance did not stay; the pod is\n%s", describe(s))
			}
			if newer.ID == older.ID || newer.RestartCount != older.RestartCount+1 || older.RestartCount != 0 {
				t.Errorf("the restart counts are not 0 and 1, or the IDs are one; the pod is\n%s", describe(s))
			}
			if t.container(s, "long").ID != t.container(first, "long").ID {
				t.Errorf("the other container was restarted, too; the pod was\n%s\nand is\n%s", describe(first), describe(s))
			}
		},
	},
	{
		name: "NeverIsNotRestarted",
		says: "With restartPolicy Never a container that has exited is not started again.",
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyNever, named("ok", t.suite.Exit(0)), named("bad", t.suite.Exit(1)), named("long", t.suite.Long))
			t.syncUntil(pod, "ok has exited", exited("ok"))
			t.syncUntil(pod, "bad has exited", exited("bad"))
			t.syncThrice(pod)
			if s := t.look(pod.UID); len(s.Containers) != 3 || !in(s, "long", runtime.ContainerRunning) {
				t.Errorf("the pod is\n%s", describe(s))
			}
		},
	},
	{
		name: "OnFailureRestartsFailuresOnly",
		says: "With restartPolicy OnFailure a container that failed is started again, one that succeeded is not.",
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyOnFailure, named("ok", t.suite.Exit(0)), named("bad", t.suite.Exit(1)), named("long", t.suite.Long))
			t.syncUntil(pod, "ok has exited", exited("ok"))
			t.syncUntil(pod, "bad was restarted", func(s *runtime.PodStatus) bool { return len(instances(s, "bad")) > 1 })
			if s := t.look(pod.UID); len(instances(s, "ok")) != 1 {
				t.Errorf("ok was started again; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name: "BackOffSaysUntilWhen",
		says: "A restart is done or put off; if it is put off, RetryAt says until when, and the action that failed has the reason CrashLoopBackOff.",
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Exit(1)))
			t.sync(pod)
			for restarts := 1; restarts <= 2; restarts++ {
				t.await(pod.UID, "flappy has exited", exited("flappy"))
				before := time.Now().Round(0)
				res, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
				if n := len(instances(t.look(pod.UID), "flappy")); n > restarts {
					continue // done
				}
				if err == nil || res.RetryAt.Before(before) {
					t.Fatalf("flappy was not restarted: %v, to be tried again at %v (now %v)", err, res.RetryAt, before)
				}
				if len(res.Actions) != 1 || res.Actions[0].Reason != "CrashLoopBackOff" || res.Actions[0].Err == nil {
					t.Errorf("the restart was put off with %+v", res.Actions)
				}
				return
			}
		},
	},
	{
		name: "FinishedPodStaysFinished",
		says: "A pod whose containers have all exited for good is left as it is, sandbox or not, by every further SyncPod.",
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyNever, named("ok", t.suite.Exit(0)))
			want := t.syncUntil(pod, "ok has exited", exited("ok"))
			t.syncThrice(pod)
			if res := t.sync(pod); len(res.Actions) > 0 {
				t.Errorf("the fourth SyncPod of a finished pod did %+v", res.Actions)
			}
			got := t.look(pod.UID)
			if len(got.Sandboxes) != len(want.Sandboxes) || len(got.Containers) != 1 || got.Containers[0].ID != want.Containers[0].ID {
				t.Errorf("the pod was\n%s\nand is\n%s", describe(want), describe(got))
			}
		},
	},
}
