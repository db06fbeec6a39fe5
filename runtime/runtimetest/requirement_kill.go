package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// killRequirements are the requirements of [runtime.Runtime] on KillPod.
var killRequirements = []requirement{
	{
		name:     "KillSendsSIGTERM",
		text:     "KillPod first sends SIGTERM to every container, and returns nil only when no container of the pod runs; exited containers are kept, so that their exits can be read.",
		contract: "Runtime.KillPod: TERM, the grace period, KILL",
		cause:    "the backend's delete is used, which kills containers or removes their exits",
		check: func(t *checkT) {
			t.settled(func(settle func()) error {
				pod := t.pod(v1.RestartPolicyAlways, named("a", t.suite.Containers.Long), named("b", t.suite.Containers.Long))
				pod.Spec.TerminationGracePeriodSeconds = seconds(2 * t.suite.Timing.Timeout)
				up := t.up(pod)
				settle()
				took := t.kill(pod, nil)
				s := t.look(pod.UID)
				t.stopped(s)
				for _, was := range up.Containers {
					c := t.container(s, was.Name)
					if c.ID != was.ID || c.State != runtime.ContainerExited || c.FinishedAt.IsZero() {
						t.Fatalf("the exit of %s cannot be read; the pod is\n%s", was.Name, describe(s))
					}
					if c.ExitCode == exitKILL {
						return fmt.Errorf("%s was stopped with KILL, not with TERM", c.Name)
					}
				}
				if took > t.suite.Timing.Timeout {
					return fmt.Errorf("containers that exit on TERM took %v to stop", took)
				}
				return nil
			})
		},
	},
	{
		name:     "KillIsIdempotent",
		text:     "Killing a pod that does not run, or that does not exist, is not an error.",
		contract: "Runtime.KillPod: killing a pod that does not run, or that does not exist, is not an error",
		cause:    "the backend's not-found error is returned",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			t.kill(pod, nil) // never existed
			if p := t.listed(pod.UID); p != nil {
				t.Errorf("after a KillPod of a pod that never existed, Pods lists %+v", *p)
			}
			t.up(pod)
			t.kill(pod, nil)
			want := t.look(pod.UID)
			t.kill(pod, nil)
			if got := t.look(pod.UID); len(got.Containers) != len(want.Containers) {
				t.Errorf("the second KillPod changed the pod from\n%s\nto\n%s", describe(want), describe(got))
			}
		},
	},
	{
		name:     "KillSendsSIGKILLAfterGracePeriod",
		text:     "A container that ignores SIGTERM is terminated with SIGKILL (exit code 137) at the end of the grace period, not before; KillPod returns only then.",
		contract: "Runtime.KillPod (rt-108)",
		cause:    "KillPod returns when the stop was requested, not when it is complete",
		needs:    []string{"Containers.Stubborn"},
		check: func(t *checkT) {
			t.settled(func(settle func()) error {
				pod := t.pod(v1.RestartPolicyAlways, named("stubborn", t.suite.Containers.Stubborn), named("long", t.suite.Containers.Long))
				t.up(pod)
				settle()
				took := t.kill(pod, new(int64(3)))
				s := t.look(pod.UID)
				t.stopped(s)
				return errors.Join(t.took(took, 3*time.Second), t.killed(s, "stubborn"))
			})
		},
	},
	{
		name:     "KillUsesGracePeriodOfPod",
		text:     "The grace period is the request's, else deletionGracePeriodSeconds, else terminationGracePeriodSeconds of the spec.",
		contract: "KillRequest.GracePeriodSeconds (rt-108)",
		cause:    "deletionGracePeriodSeconds is ignored, or the backend's default is used",
		needs:    []string{"Containers.Stubborn"},
		check: func(t *checkT) {
			far, near := seconds(3*t.suite.Timing.Timeout), new(int64(3))
			t.settled(func(settle func()) error {
				var kills sync.WaitGroup
				defer kills.Wait()
				errs := make(chan error, 3)
				for _, set := range []struct {
					what                           string
					request, deletion, termination *int64
				}{
					{"the request's", near, far, far},
					{"deletionGracePeriodSeconds", nil, near, far},
					{"terminationGracePeriodSeconds", nil, nil, near},
				} {
					pod := t.pod(v1.RestartPolicyAlways, named("stubborn", t.suite.Containers.Stubborn))
					pod.Spec.TerminationGracePeriodSeconds = set.termination
					t.up(pod)
					settle()
					pod.DeletionGracePeriodSeconds = set.deletion
					kills.Go(func() { // while the next pod starts
						begun := time.Now()
						if err := t.rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod, GracePeriodSeconds: set.request}); err != nil {
							t.Errorf("KillPod: %v", err)
						}
						if err := t.took(time.Since(begun), 3*time.Second); err != nil {
							errs <- fmt.Errorf("the grace period is %s: %w", set.what, err)
						}
					})
				}
				kills.Wait()
				close(errs)
				return <-errs
			})
		},
	},
	{
		name:     "KillStopsOrphan",
		text:     "With a nil Pod (an orphaned pod) KillPod uses the grace period that the runtime recorded when it created the containers, and sends SIGTERM before SIGKILL.",
		contract: "KillRequest.Pod: the values that the runtime stored when it created the containers are used (rt-15, rt-108)",
		cause:    "the grace period is not recorded with the container (a label, an annotation, a file)",
		needs:    []string{"Containers.Stubborn"},
		check: func(t *checkT) {
			t.settled(func(settle func()) error {
				pod := t.pod(v1.RestartPolicyAlways, named("stubborn", t.suite.Containers.Stubborn), named("long", t.suite.Containers.Long))
				pod.Spec.TerminationGracePeriodSeconds = new(int64(3))
				t.up(pod)
				settle()
				begun := time.Now()
				if err := t.rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID}); err != nil {
					t.Fatalf("KillPod: %v", err)
				}
				took := time.Since(begun)
				s := t.look(pod.UID)
				t.stopped(s)
				if c := t.container(s, "long"); c.ExitCode == exitKILL {
					return fmt.Errorf("long was not stopped with TERM; the pod is\n%s", describe(s))
				}
				return t.took(took, 3*time.Second)
			})
		},
	},
	{
		name:     "KillObeysItsContext",
		text:     "When ctx is done KillPod returns ctx's error immediately; the caller may call it again with a shorter grace period, which then applies.",
		contract: "Runtime.KillPod: when ctx is done it returns ctx's error immediately",
		cause:    "the stop is one long call of the backend that cannot be canceled or repeated",
		needs:    []string{"Containers.Stubborn"},
		check: func(t *checkT) {
			const short = 300 * time.Millisecond
			t.settled(func(settle func()) error {
				pod := t.pod(v1.RestartPolicyAlways, named("stubborn", t.suite.Containers.Stubborn))
				pod.Spec.TerminationGracePeriodSeconds = seconds(3 * t.suite.Timing.Timeout)
				t.up(pod)
				settle()
				ctx, cancel := context.WithTimeout(t.Context(), short)
				defer cancel()
				begun := time.Now()
				err := t.rt.KillPod(ctx, runtime.KillRequest{UID: pod.UID, Pod: pod})
				if !ended(err) {
					return fmt.Errorf("KillPod returned %v, not the error of its context", err)
				}
				if err := t.took(time.Since(begun), short); err != nil {
					return err
				}
				if s := t.look(pod.UID); !in(s, "stubborn", runtime.ContainerRunning) {
					return fmt.Errorf("SIGKILL was sent before the end of the grace period, when the context was canceled; the pod is\n%s", describe(s))
				}
				took := t.kill(pod, new(int64(2)))
				s := t.look(pod.UID)
				t.stopped(s)
				return errors.Join(t.took(took, 2*time.Second), t.killed(s, "stubborn"))
			})
		},
	},
	{
		name:     "KillOfCompletedPodSucceeds",
		text:     "KillPod of a pod whose containers have exited stops its sandboxes and keeps the exit codes.",
		contract: "Runtime.KillPod: exited containers stay, so that their exit can be read",
		cause:    "the backend's delete is used, which removes the containers",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyNever, named("short", t.suite.Containers.Exit(5)))
			t.syncUntil(pod, "short has exited", exited("short"))
			t.kill(pod, nil)
			s := t.look(pod.UID)
			t.stopped(s)
			if c := t.container(s, "short"); c.ExitCode != 5 {
				t.Errorf("the exit of short cannot be read any more; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "KillWithZeroGracePeriodIsPrompt",
		text:     "With a grace period of 0 KillPod terminates the pod promptly, also a container that ignores SIGTERM.",
		contract: "KillRequest.GracePeriodSeconds (the kubelet's minimum of two seconds is allowed)",
		cause:    "0 is treated as not set, and the pod's own grace period is used",
		needs:    []string{"Containers.Stubborn"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("stubborn", t.suite.Containers.Stubborn))
			pod.Spec.TerminationGracePeriodSeconds = seconds(3 * t.suite.Timing.Timeout)
			t.up(pod)
			if err := t.took(t.kill(pod, new(int64(0))), 0); err != nil {
				t.Error(err)
			}
			t.stopped(t.look(pod.UID))
		},
	},
	{
		name:     "KillAcceptsStatusOfCaller",
		text:     "KillPod with the pod status of the caller has the same effect as without.",
		contract: "KillRequest.Status",
		cause:    "the status is used where the current state is required, or the two are mixed",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long), named("short", t.suite.Containers.Exit(5)))
			t.sync(pod)
			s := t.await(pod.UID, "short has exited", exited("short"))
			if err := t.rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod, Status: s}); err != nil {
				t.Fatalf("KillPod: %v", err)
			}
			s = t.look(pod.UID)
			t.stopped(s)
			if t.container(s, "short").ExitCode != 5 {
				t.Errorf("KillPod changed an exit; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "NothingStartsAfterKill",
		text:     "KillPod returns nil only when no container of the pod runs, and none starts later: starts of a canceled SyncPod are stopped as well.",
		contract: "Runtime.KillPod, Runtime.SyncPod",
		cause:    "a start continues in the background after its caller has returned, and KillPod lists the containers before it completes",
		check: func(t *checkT) {
			for d := time.Millisecond; d <= 300*time.Millisecond && d < t.suite.Timing.Timeout/4; d *= 4 {
				pod := t.pod(v1.RestartPolicyAlways, named("a", t.suite.Containers.Long), named("b", t.suite.Containers.Long))
				ctx, cancel := context.WithTimeout(t.Context(), d)
				_, _ = t.rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
				cancel()
				// A start in progress may have to complete before KillPod can stop it.
				t.killUntilDone(pod)
				for range 5 {
					if s := t.look(pod.UID); s.Running() {
						t.Fatalf("a container ran after KillPod had returned nil, %v after SyncPod; the pod is\n%s", d, describe(s))
					}
					t.pause(2 * t.suite.Timing.PollInterval)
				}
			}
		},
	},
	{
		name:     "KillsRunConcurrently",
		text:     "KillPod runs concurrently for different pods: one that waits for its grace period does not delay others.",
		contract: "Runtime: for different pods they run in parallel",
		cause:    "one lock or one worker for all kills",
		needs:    []string{"Containers.Stubborn"},
		check: func(t *checkT) {
			t.settled(func(settle func()) error {
				slow := t.pod(v1.RestartPolicyAlways, named("stubborn", t.suite.Containers.Stubborn))
				quick := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
				t.up(slow)
				t.up(quick)
				settle()
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					done <- t.rt.KillPod(ctx, runtime.KillRequest{UID: slow.UID, Pod: slow, GracePeriodSeconds: seconds(3 * t.suite.Timing.Timeout)})
				}()
				t.pause(t.suite.Timing.PollInterval)
				took := t.kill(quick, nil)
				running := t.look(slow.UID)
				cancel()
				err := <-done
				switch {
				case took > t.suite.Timing.Timeout:
					return fmt.Errorf("the kill of a pod that exits on TERM took %v while another was being stopped", took)
				case !in(running, "stubborn", runtime.ContainerRunning):
					return fmt.Errorf("the grace period of a pod that was being stopped was not kept; it is\n%s", describe(running))
				case !ended(err):
					return fmt.Errorf("KillPod returned %v, not the error of its context", err)
				}
				return nil
			})
		},
	},
	{
		name:     "OrphanSurvivesAgentRestart",
		text:     "The runtime's records survive the agent: after its restart a pod without a source is listed, and killed with its own grace period.",
		contract: "Lister.Pods: created by this agent or by an earlier one; KillRequest.Pod (rt-15)",
		cause:    "the grace period is kept in memory",
		needs:    []string{"Backend.Reopen", "Containers.Stubborn"},
		check: func(t *checkT) {
			t.settled(func(settle func()) error {
				pod := t.pod(v1.RestartPolicyAlways, named("stubborn", t.suite.Containers.Stubborn))
				pod.Spec.TerminationGracePeriodSeconds = new(int64(3))
				t.up(pod)
				settle()
				t.rt = t.suite.Backend.Reopen(t.T, t.rt)
				if p := t.listed(pod.UID); p == nil || p.Name != pod.Name || p.Namespace != pod.Namespace {
					t.Fatalf("the pod of an earlier agent is listed as %+v", p)
				}
				begun := time.Now()
				if err := t.rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID}); err != nil {
					t.Fatalf("KillPod: %v", err)
				}
				took := time.Since(begun)
				t.stopped(t.look(pod.UID))
				return t.took(took, 3*time.Second)
			})
		},
	},
}

// settled calls check, whose settle waits for the containers that it has started to handle
// SIGTERM. How long that takes is not known: check is repeated with ten times and a hundred
// times the wait, and only the error of the last call fails t.
func (t *checkT) settled(check func(settle func()) error) {
	t.Helper()
	var err error
	for polls := 10; polls <= 1000; polls *= 10 {
		wait := time.Duration(polls) * t.suite.Timing.PollInterval
		if err = check(func() { t.Helper(); t.pause(wait) }); err == nil {
			return
		}
		t.Logf("%v after the start: %v", wait, err)
	}
	t.Error(err)
}

// took checks that got is at least want, less a tenth because runtimes measure from
// the arrival of the request, and at most want plus Timing.Timeout.
func (t *checkT) took(got, want time.Duration) error {
	if got < want-want/10 || got > want+t.suite.Timing.Timeout {
		return fmt.Errorf("KillPod took %v; it should take %v", got, want)
	}
	return nil
}

// killed checks that the newest instance of a container was terminated with KILL.
func (t *checkT) killed(s *runtime.PodStatus, name string) error {
	t.Helper()
	if t.container(s, name).ExitCode != exitKILL {
		return fmt.Errorf("%s has not exited with %d; the pod is\n%s", name, exitKILL, describe(s))
	}
	return nil
}

func seconds(d time.Duration) *int64 { return new(int64(d / time.Second)) }

// killUntilDone kills the pod, at once, until that succeeds.
func (t *checkT) killUntilDone(pod *v1.Pod) {
	t.Helper()
	for begun := time.Now(); ; t.pause(t.suite.Timing.PollInterval) {
		err := t.rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod, GracePeriodSeconds: new(int64(0))})
		if err == nil {
			return
		}
		if time.Since(begun) > t.suite.Timing.Timeout {
			t.Fatalf("KillPod: %v", err)
		}
	}
}
