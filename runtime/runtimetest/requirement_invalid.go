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

// invalidRequirements are those on invalid and unusual requests, and on leaked
// goroutines.
var invalidRequirements = []requirement{
	{
		name:     "RequestsWithoutUIDAreRejected",
		text:     "A request without a pod or a UID returns an error that names the field; it has no effect and does not panic.",
		contract: "SyncRequest.Pod, KillRequest.UID",
		cause:    "the field is used before it is checked",
		check: func(t *checkT) {
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
					t.Errorf("%s returned no error", what)
				case !strings.Contains(err.Error(), "UID") && !strings.Contains(err.Error(), "Pod") && !strings.Contains(err.Error(), "pod"):
					t.Errorf("the error of %s does not name the missing field: %v", what, err)
				}
			}
			if p := t.listed(""); p != nil {
				t.Errorf("a pod without a UID is listed: %+v", *p)
			}
		},
	},
	{
		name:     "UnusualNamesAreHandled",
		text:     "A pod or container whose name or UID looks like a path is rejected with an error that names it, or runs under this name; it never panics, and the pod can be killed.",
		contract: "Runtime: any pod may be passed, also one that no API server has validated",
		cause:    "names are used unchecked in file paths or IDs of the backend",
		check: func(t *checkT) {
			for _, odd := range []string{"", "../../up", "nul\x00byte", strings.Repeat("long", 200), "two\nlines"} {
				for what, pod := range map[string]*v1.Pod{
					"name":      t.odd(func(pod *v1.Pod) { pod.Name = odd }),
					"namespace": t.odd(func(pod *v1.Pod) { pod.Namespace = odd }),
					"UID":       t.odd(func(pod *v1.Pod) { pod.UID = types.UID(odd) }),
					"container": t.odd(func(pod *v1.Pod) { pod.Spec.Containers[0].Name = odd }),
				} {
					if odd == "" && what != "namespace" {
						continue // without a UID, a name or a container's name: not a pod
					}
					about := fmt.Sprintf("a pod with the %s %.20q", what, odd)
					err := t.calm("SyncPod of "+about, func() error {
						_, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
						return err
					})
					if err != nil && !names(err, odd, pod) {
						t.Errorf("SyncPod of %s returned an error that does not name it: %v", about, err)
					}
					if err == nil {
						s := t.look(pod.UID)
						if s.Name != pod.Name || s.Namespace != pod.Namespace || s.Container(pod.Spec.Containers[0].Name) == nil {
							t.Errorf("%s, namespace %q, is reported as %q in %q:\n%s", about, pod.Namespace, s.Name, s.Namespace, describe(s))
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
		name:     "LargePodsAreHandled",
		text:     "A pod with 10,000 labels, or with a mebibyte of environment, runs or is rejected with an error; the runtime and its lists continue to work.",
		contract: "Runtime; Lister.Pods",
		cause:    "data that exceeds the backend's messages or exec's limit fails without an error, or breaks the list",
		check: func(t *checkT) {
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
					t.Errorf("SyncPod of a pod with %s returned no error, and it is\n%s", what, describe(s))
				}
				t.listed(pod.UID) // which must succeed
				t.killUntilDone(pod)
			}
		},
	},
	{
		name:     "GoroutinesAreNotLeaked",
		text:     "When a call has returned, none of its goroutines is left: after several pod lifecycles with canceled calls there are as many goroutines as before.",
		contract: "package runtime, Concurrency; Lister: when ctx ends its methods return",
		cause:    "a helper goroutine waits to send a result that is not read, or a timer is not stopped",
		alone:    true,
		check: func(t *checkT) {
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
func (t *checkT) calm(what string, call func() error) (err error) {
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
func (t *checkT) odd(change func(*v1.Pod)) *v1.Pod {
	pod := t.pod(v1.RestartPolicyNever, named("long", t.suite.Containers.Long))
	uid := pod.UID
	change(pod)
	if pod.UID != uid {
		t.Cleanup(func() { t.clean(pod.UID) })
	}
	return pod
}

// names reports whether err identifies the pod: by its unusual value,
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
