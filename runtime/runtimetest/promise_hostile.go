package runtimetest

import (
	"context"
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// hostilePromises are those on what nobody should ask for, and on what is left
// when all is over.
var hostilePromises = []promise{
	{
		name:     "NamelessRequestsAreRefused",
		text:     "A request without a pod or a UID is an error that says so; it does nothing, and it does not panic.",
		contract: "SyncRequest.Pod, KillRequest.UID",
		cause:    "the field is used before it is looked at",
		check: func(t *trial) {
			nameless := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			nameless.UID = ""
			for what, call := range map[string]func() error{
				"SyncPod with a nil Pod": func() error {
					_, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{})
					return err
				},
				"SyncPod of a pod without a UID": func() error {
					_, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: nameless})
					return err
				},
				"KillPod without a UID": func() error { return t.rt.KillPod(t.Context(), runtime.KillRequest{}) },
				"KillPod without a UID, with a pod": func() error {
					return t.rt.KillPod(t.Context(), runtime.KillRequest{Pod: nameless, GracePeriodSeconds: new(int64(0))})
				},
			} {
				err := t.calm(what, call)
				switch {
				case err == nil:
					t.Errorf("%s is no error", what)
				case !strings.Contains(err.Error(), "UID") && !strings.Contains(err.Error(), "Pod") && !strings.Contains(err.Error(), "pod"):
					t.Errorf("%s is an error that does not say what is missing: %v", what, err)
				}
			}
			if p := t.listed(""); p != nil {
				t.Errorf("a pod without a UID is listed: %+v", *p)
			}
		},
	},
	{
		name:     "OddNamesDoNoHarm",
		text:     "A pod or container with a name or UID that reads like a path is refused with an error that names it, or runs under just that name; it never panics, and it can be killed.",
		contract: "Syncer: any pod may be asked for, also one that no API server has seen",
		cause:    "names become paths of files or IDs of the backend unchecked",
		check: func(t *trial) {
			for _, odd := range []string{"../../up", "nul\x00byte", strings.Repeat("long", 200), "two\nlines"} {
				for what, pod := range map[string]*v1.Pod{
					"name":      t.odd(func(pod *v1.Pod) { pod.Name = odd }),
					"namespace": t.odd(func(pod *v1.Pod) { pod.Namespace = odd }),
					"UID":       t.odd(func(pod *v1.Pod) { pod.UID = types.UID(odd) }),
					"container": t.odd(func(pod *v1.Pod) { pod.Spec.Containers[0].Name = odd }),
				} {
					about := fmt.Sprintf("a pod with the %s %.20q", what, odd)
					err := t.calm("SyncPod of "+about, func() error {
						_, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
						return err
					})
					if err != nil && !names(err, odd, pod) {
						t.Errorf("SyncPod of %s is refused, and the error does not say whose: %v", about, err)
					}
					if err == nil {
						s := t.look(pod.UID)
						if s.Name != pod.Name || s.Namespace != pod.Namespace || s.Container(pod.Spec.Containers[0].Name) == nil {
							t.Errorf("%s, namespace %q, is shown as %q in %q:\n%s", about, pod.Namespace, s.Name, s.Namespace, describe(s))
						}
					}
					kill := t.calm("KillPod of "+about, func() error {
						return t.rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod, GracePeriodSeconds: new(int64(0))})
					})
					if kill != nil && err == nil {
						t.Errorf("%s was started and cannot be killed: %v", about, kill)
					}
				}
			}
		},
	},
	{
		name:     "BigPodsDoNoHarm",
		text:     "A pod with 10,000 labels, or with a mebibyte of environment, runs or is refused with an error; the runtime goes on, and the list with it.",
		contract: "Syncer; Lister.Pods",
		cause:    "what is too long for the backend's messages or for an exec fails where nobody looks, or takes the list with it",
		check: func(t *trial) {
			labels := t.pod(v1.RestartPolicyNever, named("long", t.suite.Containers.Long))
			labels.Labels, labels.Annotations = map[string]string{}, map[string]string{}
			for i := range 10_000 {
				labels.Labels[fmt.Sprintf("label-%d", i)] = "value"
				labels.Annotations[fmt.Sprintf("example.com/annotation-%d", i)] = "value"
			}
			c := named("long", t.suite.Containers.Long)
			for i := range 1 << 10 {
				c.Env = append(c.Env, v1.EnvVar{Name: fmt.Sprintf("BIG_%d", i), Value: strings.Repeat("x", 1<<10)})
			}
			env := t.pod(v1.RestartPolicyNever, c)
			wide := t.pod(v1.RestartPolicyNever, named("long", t.suite.Containers.Long))
			wide.Spec.Containers[0].Env = []v1.EnvVar{{Name: "WIDE", Value: strings.Repeat("x", 1<<20)}}
			for what, pod := range map[string]*v1.Pod{"10,000 labels": labels, "1,024 variables of 1 KiB": env, "a variable of 1 MiB": wide} {
				err := t.calm("SyncPod", func() error {
					_, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
					return err
				})
				s := t.look(pod.UID)
				if err == nil && s.Container("long") == nil {
					t.Errorf("SyncPod of a pod with %s is no error, and it is\n%s", what, describe(s))
				}
				t.listed(pod.UID) // which must succeed
				t.killUntilDone(pod)
			}
		},
	},
	{
		name:     "LeavesNoGoroutineBehind",
		text:     "When a call has returned nothing of it goes on: after some lives of pods, with calls that were cut short, there are as many goroutines as before.",
		contract: "package runtime, Concurrency; Lister: when ctx ends its methods return",
		cause:    "a helper goroutine waits for an answer that nobody reads any more, or a timer is not stopped",
		alone:    true,
		check: func(t *trial) {
			life := func() {
				pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				_, _ = t.rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
				cancel()
				t.recovers(pod)
				ctx, cancel = context.WithCancel(t.Context())
				cancel()
				_, _ = t.rt.Pods(ctx)
				_, _ = t.rt.PodStatus(ctx, pod.UID)
				_ = t.rt.KillPod(ctx, runtime.KillRequest{UID: pod.UID, Pod: pod})
				t.killUntilDone(pod)
			}
			life() // connections are made, pools filled
			const lives = 6
			before := goruntime.NumGoroutine()
			for range lives {
				life()
			}
			deadline := time.Now().Add(t.suite.Timing.Timeout / 3)
			for goruntime.NumGoroutine() > before+lives/2 {
				if time.Now().After(deadline) {
					stacks := make([]byte, 64<<10)
					t.Errorf("after %d lives there are %d goroutines, before them there were %d:\n%s",
						lives, goruntime.NumGoroutine(), before, stacks[:goruntime.Stack(stacks, true)])
					return
				}
				t.pause(t.suite.Timing.PollInterval)
			}
		},
	},
}

// calm makes the call and fails the test if it panics.
func (t *trial) calm(what string, call func() error) (err error) {
	t.Helper()
	defer func() {
		t.Helper()
		if p := recover(); p != nil {
			t.Errorf("%s panics: %v\n%s", what, p, debug.Stack())
			err = fmt.Errorf("UID: panic: %v", p)
		}
	}()
	return call()
}

// odd returns a pod with one thing changed that is cleaned up under its last UID.
func (t *trial) odd(change func(*v1.Pod)) *v1.Pod {
	pod := t.pod(v1.RestartPolicyNever, named("long", t.suite.Containers.Long))
	uid := pod.UID
	change(pod)
	if pod.UID != uid {
		t.Cleanup(func() { t.clean(pod.UID) })
	}
	return pod
}

// names reports whether err tells which pod it is about: by what is odd about it,
// quoted or not and perhaps shortened, or by its name or UID.
func names(err error, odd string, pod *v1.Pod) bool {
	text := err.Error()
	quoted := fmt.Sprintf("%q", odd)
	for _, name := range []string{odd, strings.Trim(quoted, `"`), string(pod.UID), pod.Name} {
		if name != "" && strings.Contains(text, name[:min(len(name), 8)]) {
			return true
		}
	}
	return false
}
