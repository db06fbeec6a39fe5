package runtimetest

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// syncPromises are those of [runtime.Syncer] on what SyncPod does.
var syncPromises = []promise{
	{
		name: "StartsEverything",
		says: "SyncPod takes the pod one step towards what is wanted: without init containers, it makes a sandbox and starts every container, and says so in its actions.",
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("a", t.suite.Long), named("b", t.suite.Long))
			before := time.Now().Round(0)
			res := t.sync(pod)
			if len(res.Actions) == 0 {
				t.Error("SyncPod names no action")
			}
			s := t.look(pod.UID)
			if s.Name != pod.Name || s.Namespace != pod.Namespace {
				t.Errorf("the pod is called %s/%s, not %s/%s", s.Namespace, s.Name, pod.Namespace, pod.Name)
			}
			if len(s.Sandboxes) != 1 || s.Sandboxes[0].State != runtime.SandboxReady {
				t.Fatalf("the pod has not one ready sandbox:\n%s", describe(s))
			}
			if sb := s.Sandboxes[0]; sb.NetworkKnown && !sb.HostNetwork && len(s.IPs) == 0 {
				t.Error("the sandbox has a network of its own, and no IP")
			}
			if len(s.Containers) != 2 {
				t.Fatalf("the pod has not two containers:\n%s", describe(s))
			}
			for _, want := range pod.Spec.Containers {
				c := s.Container(want.Name)
				if c == nil || c.State != runtime.ContainerRunning {
					t.Fatalf("%s does not run:\n%s", want.Name, describe(s))
				}
				if !strings.Contains(c.ID, "://") {
					t.Errorf("the ID of %s is %q, not <runtime name>://<id>", c.Name, c.ID)
				}
				if c.SandboxID != s.Sandboxes[0].ID || c.Image != want.Image || c.RestartCount != 0 {
					t.Errorf("%s is %+v", c.Name, *c)
				}
				// A second for a runtime whose clock ticks in those.
				if c.CreatedAt.Before(before.Add(-time.Second)) || c.StartedAt.Before(c.CreatedAt) || !c.FinishedAt.IsZero() {
					t.Errorf("%s was created %v, started %v, finished %v, all by a SyncPod of %v", c.Name, c.CreatedAt, c.StartedAt, c.FinishedAt, before)
				}
			}
		},
	},
	{
		name: "IsIdempotent",
		says: "SyncPod is idempotent: called again with nothing changed it does nothing, and a container that runs as specified is never touched.",
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("a", t.suite.Long), named("b", t.suite.Long))
			want := t.up(pod)
			for _, req := range []runtime.SyncRequest{{Pod: pod}, {Pod: pod, Status: want}, {Pod: pod.DeepCopy(), Status: t.look(pod.UID)}} {
				res, err := t.rt.SyncPod(t.Context(), req)
				if err != nil {
					t.Fatalf("SyncPod: %v", err)
				}
				if len(res.Actions) > 0 || !res.RetryAt.IsZero() {
					t.Errorf("with nothing changed SyncPod did %+v, to be tried again at %v", res.Actions, res.RetryAt)
				}
			}
			got := t.look(pod.UID)
			if !reflect.DeepEqual(inUTC(got.Brief()), inUTC(want.Brief())) {
				t.Errorf("the pod was\n%s\nand is\n%s", describe(want), describe(got))
			}
		},
	},
	{
		name: "LeavesTheSpecAlone",
		says: "SyncPod and KillPod do not change the pod they are given.",
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Long))
			want := pod.DeepCopy()
			t.sync(pod)
			t.kill(pod, nil)
			if !reflect.DeepEqual(pod, want) {
				t.Errorf("the pod was\n\t%v\nand is\n\t%v", want, pod)
			}
		},
	},
	{
		name: "MissingVolumeIsAConfigError",
		says: "A container that mounts a volume which is not listed in the request is not started (CreateContainerConfigError); the others are.",
		check: func(t *trial) {
			mounts := named("mounts", t.suite.Long)
			mounts.VolumeMounts = append(mounts.VolumeMounts, v1.VolumeMount{Name: "data", MountPath: "/data"})
			pod := t.pod(v1.RestartPolicyAlways, mounts, named("plain", t.suite.Long))
			pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
			res, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			if err == nil {
				t.Error("SyncPod returned no error")
			}
			found := false
			for _, a := range res.Actions {
				if a.Target == "mounts" && a.Err != nil {
					found = true
					if a.Reason != "CreateContainerConfigError" {
						t.Errorf("the reason is %q, not CreateContainerConfigError", a.Reason)
					}
				}
			}
			if !found {
				t.Errorf("no action says that mounts failed: %+v", res.Actions)
			}
			s := t.look(pod.UID)
			if in(s, "mounts", runtime.ContainerRunning) || !in(s, "plain", runtime.ContainerRunning) {
				t.Errorf("not plain alone runs; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:  "InitContainersInOrder",
		says:  "SyncPod does what can be done without waiting for a container: it starts the first init container, and leaves the second to the call made after the first was seen to exit; regular containers follow the last.",
		needs: needsInit,
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("main", t.suite.Long))
			pod.Spec.InitContainers = []v1.Container{named("first", t.suite.Exit(0)), named("second", t.suite.Exit(0))}
			t.sync(pod)
			if s := t.look(pod.UID); s.Container("second") != nil || s.Container("main") != nil {
				t.Errorf("one SyncPod started more than the first init container; the pod is\n%s", describe(s))
			}
			s := t.up(pod)
			first, second, main := t.container(s, "first"), t.container(s, "second"), t.container(s, "main")
			if second.CreatedAt.Before(first.FinishedAt) || main.CreatedAt.Before(second.FinishedAt) {
				t.Errorf("first finished at %v, second was created at %v and finished at %v, main was created at %v",
					first.FinishedAt, second.CreatedAt, second.FinishedAt, main.CreatedAt)
			}
			if len(s.Containers) != 3 {
				t.Errorf("an init container ran more than once; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:  "FailedInitContainerGates",
		says:  "After an init container that failed for good (restartPolicy Never) no other container of the pod is started.",
		needs: needsInit,
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyNever, named("main", t.suite.Long))
			pod.Spec.InitContainers = []v1.Container{named("first", t.suite.Exit(1)), named("second", t.suite.Exit(0))}
			t.syncUntil(pod, "first has exited", exited("first"))
			t.syncThrice(pod)
			if s := t.look(pod.UID); len(s.Containers) != 1 {
				t.Errorf("something was started after the failure; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name: "SameNameOtherUID",
		says: "A pod is known by its UID: two pods of one name are two, and what is done to one leaves the other alone.",
		check: func(t *trial) {
			one := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Long))
			two := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Long))
			two.Name = one.Name
			t.sync(one)
			t.sync(two)
			first, second := t.look(one.UID), t.look(two.UID)
			if len(first.Containers) != 1 || len(second.Containers) != 1 || first.Containers[0].ID == second.Containers[0].ID {
				t.Fatalf("the pods are\n%s\nand\n%s", describe(first), describe(second))
			}
			t.kill(one, nil)
			if s := t.look(one.UID); s.Running() {
				t.Errorf("the pod that was killed is\n%s", describe(s))
			}
			if s := t.look(two.UID); !reflect.DeepEqual(inUTC(s.Brief()), inUTC(second.Brief())) {
				t.Errorf("the other pod was\n%s\nand is\n%s", describe(second), describe(s))
			}
		},
	},
	{
		name: "PodsInParallel",
		says: "All methods may be called from many goroutines at once; for different pods SyncPod and KillPod run in parallel.",
		check: func(t *trial) {
			var wg sync.WaitGroup
			for range 4 {
				pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Long))
				wg.Go(func() { // Error only: Fatal is for the test's own goroutine
					for range 2 {
						if _, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod}); err != nil {
							t.Errorf("SyncPod: %v", err)
						}
						if _, err := t.rt.Pods(t.Context()); err != nil {
							t.Errorf("Pods: %v", err)
						}
						s, err := t.rt.PodStatus(t.Context(), pod.UID)
						if err != nil || s == nil || len(s.Containers) != 1 || !in(s, "long", runtime.ContainerRunning) {
							t.Errorf("PodStatus: %+v, %v", s, err)
						}
					}
					if err := t.rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}); err != nil {
						t.Errorf("KillPod: %v", err)
					}
					if s, err := t.rt.PodStatus(t.Context(), pod.UID); err != nil || s.Running() {
						t.Errorf("PodStatus after KillPod: %+v, %v", s, err)
					}
				})
			}
			wg.Wait()
		},
	},
	{
		name: "SyncPodObeysItsContext",
		says: "When ctx ends SyncPod stops early and returns ctx's error.",
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Long))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := t.rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod}); !errors.Is(err, context.Canceled) {
				t.Errorf("SyncPod with a context that was cancelled returned %v", err)
			}
		},
	},
	{
		name: "NoTwinAfterACutShortSync",
		says: "SyncPod never starts a second instance of a container while one runs, also not when an earlier call was cut short or timed out; what that had begun is found again by the next look.",
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("a", t.suite.Long), named("b", t.suite.Long))
			for d := time.Millisecond; d <= time.Second && d < t.suite.Patience/4; d *= 2 {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				_, err := t.rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
				cancel()
				if err == nil {
					break
				}
			}
			// The runtime may still be busy with what was cut short, and refuse
			// to begin it anew until it knows how that ended.
			t.recovers(pod)
			t.up(pod)
			t.syncThrice(pod)
			s := t.look(pod.UID)
			ready := 0
			for _, sb := range s.Sandboxes {
				if sb.State == runtime.SandboxReady {
					ready++
				}
			}
			running := map[string]int{}
			for _, c := range s.Containers {
				if c.State == runtime.ContainerRunning {
					running[c.Name]++
				}
			}
			if ready != 1 || running["a"] != 1 || running["b"] != 1 {
				t.Errorf("not one sandbox and one of each container run; the pod is\n%s", describe(s))
			}
		},
	},
}

// syncThrice takes steps which are to change nothing, with time between them
// for what they might wrongly have begun.
func (t *trial) syncThrice(pod *v1.Pod) {
	t.Helper()
	for range 3 {
		t.pause(t.suite.Poll)
		t.sync(pod)
	}
}
