package runtimetest

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// backOffRequirements are those on restarts that are put off.
var backOffRequirements = []requirement{
	{
		name:     "BackOffReportsRetryAt",
		text:     "A restart is either done or delayed; if it is delayed, RetryAt is the end of the delay, and the failed action has the reason CrashLoopBackOff.",
		contract: "SyncResult.RetryAt, Action.Reason (rt-90)",
		cause:    "a delayed restart returns no error, or an error without a time",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Containers.Exit(1)))
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
		name:     "BackOffIsBounded",
		text:     "A restart is delayed by at most five minutes, and is done at RetryAt.",
		contract: "SyncResult.RetryAt: the earliest time at which a step that was put off may be tried again (rt-91)",
		cause:    "RetryAt does not agree with the back-off itself, or the delay doubles without limit",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Containers.Exit(1)))
			t.sync(pod)
			for restarts := 1; restarts <= 3; restarts++ {
				last := t.container(t.await(pod.UID, "flappy has exited", exited("flappy")), "flappy")
				res := t.sync(pod)
				wait := time.Until(res.RetryAt)
				if c := t.container(t.look(pod.UID), "flappy"); c.ID != last.ID {
					continue // it was not put off
				}
				if wait > 5*time.Minute+time.Second {
					t.Fatalf("flappy is started again in %v; it has exited %d times", wait, restarts)
				}
				if wait > t.suite.Timing.Timeout/2 {
					return // too long to wait for
				}
				if wait > 0 {
					t.pause(wait)
				}
				// A runtime may have rounded down.
				s := t.syncUntil(pod, "flappy was restarted at RetryAt", func(s *runtime.PodStatus) bool { return t.container(s, "flappy").ID != last.ID })
				if late := t.container(s, "flappy").CreatedAt.Sub(res.RetryAt); late > t.suite.Timing.Timeout/2 {
					t.Errorf("flappy was to be started at %v, and was %v later", res.RetryAt, late)
				}
			}
		},
	},
	{
		name:     "BackOffIsPerContainer",
		text:     "The back-off of a container delays neither other containers of its pod nor other pods.",
		contract: "Runtime.SyncPod, SyncResult (rt-90)",
		cause:    "the first failure ends the step, or the back-off is counted for the pod or the image",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Containers.Exit(1)), named("late", t.suite.Containers.Exit(0)))
			second := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Containers.Exit(1)))
			t.sync(pod)
			t.syncUntil(pod, "flappy and late were restarted", func(s *runtime.PodStatus) bool {
				return restarted("flappy")(s) && restarted("late")(s)
			})
			t.sync(second)
			if s := t.look(second.UID); s.Container("flappy") == nil {
				t.Errorf("a container of another pod was not started; that pod is\n%s", describe(s))
			}
		},
	},
}
