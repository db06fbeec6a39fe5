package runtimetest

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// syncRequirements are the requirements of [runtime.Runtime] on SyncPod.
var syncRequirements = []requirement{
	{
		name:     "SyncPodStartsAllContainers",
		text:     "Without init containers, one SyncPod creates a sandbox, starts every container, and reports both in its actions.",
		contract: "Runtime.SyncPod, SyncResult.Actions, PodStatus",
		cause:    "one step starts one container, or returns before the started containers are listed",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("a", t.suite.Containers.Long), named("b", t.suite.Containers.Long))
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
			if sb := s.Sandboxes[0]; sb.NetworkReported && !sb.HostNetwork && len(s.IPs) == 0 {
				t.Error("the sandbox has a network of its own, and no IP")
			}
			if len(s.Containers) != 2 {
				t.Fatalf("the pod has not two containers:\n%s", describe(s))
			}
			for _, want := range pod.Spec.Containers {
				c := s.Container(want.Name)
				if c != nil && c.State == runtime.ContainerCreated {
					t.Fatalf("%s was created and does not run when SyncPod returns; a runtime that starts containers later sets Suite.Queued:\n%s", want.Name, describe(s))
				}
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
		name:     "SyncPodIsIdempotent",
		text:     "SyncPod is idempotent: a second call without a change does nothing, and a container that runs as specified is not affected.",
		contract: "Runtime.SyncPod: called again with nothing changed it does nothing",
		cause:    "the spec is compared with the created container in another form (defaults, resolved images), so that they always differ",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("a", t.suite.Containers.Long), named("b", t.suite.Containers.Long))
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
			if !reflect.DeepEqual(inUTC(got.Pod()), inUTC(want.Pod())) {
				t.Errorf("the pod was\n%s\nand is\n%s", describe(want), describe(got))
			}
		},
	},
	{
		name:     "SyncPodDoesNotModifyPod",
		text:     "SyncPod and KillPod do not modify the pod passed to them.",
		contract: "SyncRequest.Pod: the runtime must not change it",
		cause:    "defaults or labels are set in the caller's pod instead of a copy",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			want := pod.DeepCopy()
			t.sync(pod)
			t.kill(pod, nil)
			if !reflect.DeepEqual(pod, want) {
				t.Errorf("the pod was\n\t%v\nand is\n\t%v", want, pod)
			}
		},
	},
	{
		name:     "MissingVolumeIsConfigError",
		text:     "A container that mounts a volume that is not in the request is not started (CreateContainerConfigError); the others are.",
		contract: "SyncRequest.Volumes",
		cause:    "volumes are taken from the spec, and the map is ignored",
		check: func(t *checkT) {
			mounts := named("mounts", t.suite.Containers.Long)
			mounts.VolumeMounts = append(mounts.VolumeMounts, v1.VolumeMount{Name: "data", MountPath: "/data"})
			pod := t.pod(v1.RestartPolicyAlways, mounts, named("plain", t.suite.Containers.Long))
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
				t.Errorf("no failed action on mounts is reported: %+v", res.Actions)
			}
			s := t.look(pod.UID)
			if in(s, "mounts", runtime.ContainerRunning) || !in(s, "plain", runtime.ContainerRunning) {
				t.Errorf("not plain alone runs; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "PodsAreIdentifiedByUID",
		text:     "A pod is identified by its UID: two pods with the same name are independent.",
		contract: "package runtime: a pod is known by its UID",
		cause:    "the backend's objects are named after the pod's namespace and name",
		check: func(t *checkT) {
			one := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			two := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
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
			if s := t.look(two.UID); !reflect.DeepEqual(inUTC(s.Pod()), inUTC(second.Pod())) {
				t.Errorf("the other pod was\n%s\nand is\n%s", describe(second), describe(s))
			}
		},
	},
	{
		name:     "PodsSyncConcurrently",
		text:     "All methods are safe for concurrent use; SyncPod and KillPod run concurrently for different pods.",
		contract: "package runtime, Concurrency; Syncer: for different pods they run in parallel",
		cause:    "state is shared between calls without a lock, or one lock serializes all calls",
		check: func(t *checkT) {
			var wg sync.WaitGroup
			for range 4 {
				pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
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
		name:     "SyncPodObeysItsContext",
		text:     "When ctx is done SyncPod stops and returns ctx's error.",
		contract: "Runtime.SyncPod: when ctx ends SyncPod stops early and returns ctx's error",
		cause:    "the context is not passed to the backend's calls",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := t.rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod}); !errors.Is(err, context.Canceled) {
				t.Errorf("SyncPod with a context that was canceled returned %v", err)
			}
		},
	},
	{
		name:     "CanceledSyncLeavesNoDuplicate",
		text:     "SyncPod never starts a second instance of a container while one runs, also after an earlier call was canceled or timed out; the next inspection finds what that call had created.",
		contract: "Runtime.SyncPod: never starts a second instance of a container while one runs",
		cause:    "a create that timed out is assumed to have had no effect, and repeated under another name",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("a", t.suite.Containers.Long), named("b", t.suite.Containers.Long))
			for d := time.Millisecond; d <= time.Second && d < t.suite.Timing.Timeout/4; d *= 2 {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				_, err := t.rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
				cancel()
				if err == nil {
					break
				}
			}
			// The runtime may still carry out the canceled call, and may reject
			// new ones until it has completed.
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
				t.Errorf("the pod does not have one ready sandbox and one running instance of each container; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "SyncErrorJoinsActionErrors",
		text:     "The error of SyncPod joins the errors of the result's actions, and is nil if none failed; the result is valid in either case.",
		contract: "Runtime.SyncPod, SyncResult.Err",
		cause:    "the result is dropped when there is an error, or the first error hides the others",
		check: func(t *checkT) {
			mounts := func(name string) v1.Container {
				c := named(name, t.suite.Containers.Long)
				c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: "data", MountPath: "/data"})
				return c
			}
			pod := t.pod(v1.RestartPolicyAlways, mounts("one"), mounts("two"), named("plain", t.suite.Containers.Long))
			pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
			res, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod}) // data is not ready
			if err == nil {
				t.Fatal("SyncPod of two containers that cannot be started returned no error")
			}
			failed := map[string]bool{}
			for _, a := range res.Actions {
				if a.Err == nil {
					continue
				}
				failed[a.Target] = true
				if !errors.Is(err, a.Err) {
					t.Errorf("the error %q does not contain that of %s %s, %q", err, a.Kind, a.Target, a.Err)
				}
			}
			if !failed["one"] || !failed["two"] || failed["plain"] {
				t.Errorf("the failed actions are not exactly those on one and two: %+v", res.Actions)
			}
		},
	},
	{
		name:     "ContainerWithReadyVolumesStarts",
		text:     "A container whose volumes are all in the request is started.",
		contract: "SyncRequest.Volumes",
		cause:    "only some kinds of volumes are supported by name, and the map is ignored",
		check: func(t *checkT) {
			mounts := named("mounts", t.suite.Containers.Long)
			mounts.VolumeMounts = append(mounts.VolumeMounts, v1.VolumeMount{Name: "data", MountPath: "/data"})
			pod := t.pod(v1.RestartPolicyAlways, mounts)
			pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
			if _, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Volumes: map[string]runtime.Volume{"data": {Path: t.TempDir()}}}); err != nil {
				t.Errorf("SyncPod: %v", err)
			}
			if s := t.look(pod.UID); !in(s, "mounts", runtime.ContainerRunning) {
				t.Errorf("mounts does not run; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "DeletedPodIsNotStarted",
		text:     "SyncPod of a pod with a deletion timestamp starts nothing.",
		contract: "the API's meaning of deletionTimestamp (rt-31)",
		cause:    "the timestamp is ignored, so that a terminating pod is restarted",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long), named("flappy", t.suite.Containers.Exit(1)))
			t.sync(pod)
			t.await(pod.UID, "flappy has exited", exited("flappy"))
			want := len(t.look(pod.UID).Containers)
			pod = pod.DeepCopy()
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
			t.syncThrice(pod)
			if s := t.look(pod.UID); len(s.Containers) != want {
				t.Errorf("a container of a deleted pod was started; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "FailedProbeRestartsContainer",
		text:     "A running container whose liveness or startup probe has failed is stopped and restarted; one whose probes succeeded, or have no result yet, is not.",
		contract: "SyncRequest.Probes (rt-48)",
		cause:    "Probes is ignored, or a missing result is treated as a failure",
		check: func(t *checkT) {
			probed := func(name string) v1.Container {
				c := named(name, t.suite.Containers.Long)
				c.LivenessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true"}}}, PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
				c.StartupProbe = c.LivenessProbe.DeepCopy()
				return c
			}
			pod := t.pod(v1.RestartPolicyAlways, probed("hangs"), probed("late"), probed("fine"), probed("new"))
			up := t.up(pod)
			id := func(name string) string { return t.container(up, name).ID }
			results := &runtime.ProbeResults{
				Liveness: map[string]runtime.ProbeResult{id("hangs"): runtime.ProbeFailure, id("fine"): runtime.ProbeSuccess},
				Startup:  map[string]runtime.ProbeResult{id("late"): runtime.ProbeFailure, id("fine"): runtime.ProbeSuccess},
			}
			var s *runtime.PodStatus
			for begun := time.Now(); ; t.pause(t.suite.Timing.PollInterval) {
				if res, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Probes: results}); err != nil && res.RetryAt.IsZero() {
					t.Fatalf("SyncPod: %v", err)
				}
				s = t.look(pod.UID)
				if restarted("hangs")(s) && restarted("late")(s) {
					break
				}
				if time.Since(begun) > t.suite.Timing.Timeout {
					t.Fatalf("after %v hangs and late, whose probes have failed, were not both restarted; the pod is\n%s", t.suite.Timing.Timeout, describe(s))
				}
			}
			if len(instances(s, "fine")) != 1 || len(instances(s, "new")) != 1 || !in(s, "fine", runtime.ContainerRunning) || !in(s, "new", runtime.ContainerRunning) {
				t.Errorf("fine or new was changed; the pod is\n%s", describe(s))
			}
			for _, name := range []string{"hangs", "late"} {
				if old := instances(s, name); old[len(old)-1].State != runtime.ContainerExited {
					t.Errorf("%s was restarted, though its probes did not fail; the pod is\n%s", name, describe(s))
				}
			}
		},
	},
	{
		name:     "EphemeralContainerIsStartedOnce",
		text:     "An ephemeral container that is added to a running pod is started, and never restarted after its exit.",
		contract: "the API's meaning of ephemeralContainers (rt-45)",
		cause:    "only the spec as of the pod's start is used, or ephemeral containers are restarted with the pod's policy",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			up := t.up(pod)
			pod = pod.DeepCopy()
			pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, v1.EphemeralContainer{
				EphemeralContainerCommon: v1.EphemeralContainerCommon(named("debug", t.suite.Containers.Exit(1))),
			})
			t.syncUntil(pod, "debug has exited", exited("debug"))
			t.syncThrice(pod)
			s := t.look(pod.UID)
			if len(instances(s, "debug")) != 1 {
				t.Errorf("debug was restarted; the pod is\n%s", describe(s))
			}
			if t.container(s, "long").ID != t.container(up, "long").ID {
				t.Errorf("long was changed; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "HostNetworkIsReported",
		text:     "A pod with hostNetwork has a sandbox with HostNetwork set and without IPs: the node's addresses are not listed.",
		contract: "SandboxStatus.HostNetwork, IPs",
		cause:    "hostNetwork is ignored, or the node's address is reported as the pod's",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			pod.Spec.HostNetwork = true
			s := t.up(pod)
			if len(s.Sandboxes) != 1 || !s.Sandboxes[0].HostNetwork {
				t.Errorf("HostNetwork is not set in the sandbox: %+v", s.Sandboxes)
			}
			if len(s.IPs) > 0 {
				t.Errorf("the IPs are %v", s.IPs)
			}
		},
	},
}

// syncThrice calls SyncPod three times for a pod that needs no change, with pauses
// in which wrongly started operations would complete.
func (t *checkT) syncThrice(pod *v1.Pod) {
	t.Helper()
	for range 3 {
		t.pause(t.suite.Timing.PollInterval)
		t.sync(pod)
	}
}
