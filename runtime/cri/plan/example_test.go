package plan_test

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// The init containers have succeeded, web runs an outdated image, and the log shipper
// has crashed for the third time.
func ExampleCompute() {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", UID: "u1"},
		Spec: v1.PodSpec{
			InitContainers: []v1.Container{{Name: "setup", Image: "busybox"}},
			Containers:     []v1.Container{{Name: "web", Image: "nginx:2"}, {Name: "log", Image: "fluent-bit"}},
		},
	}
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	status := &runtime.PodStatus{
		UID:       "u1",
		Sandboxes: []runtime.SandboxStatus{{ID: "box", State: runtime.SandboxReady}},
		Containers: []runtime.ContainerStatus{{
			ID: "cri://c", Name: "log", SandboxID: "box", State: runtime.ContainerExited, RestartCount: 2,
			CreatedAt: noon.Add(-time.Minute), FinishedAt: noon, ExitCode: 1,
			Hash: plan.Hash(&pod.Spec.Containers[1]),
		}, {
			ID: "cri://b", Name: "web", SandboxID: "box", State: runtime.ContainerRunning,
			Hash: plan.Hash(&v1.Container{Name: "web", Image: "nginx:1"}),
		}, {
			ID: "cri://a", Name: "setup", SandboxID: "box", State: runtime.ContainerExited,
		}},
	}
	backoff, err := plan.NewBackoff(plan.BackoffConfig{})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(plan.Compute(plan.Input{Pod: pod, Status: status, Backoff: backoff, Now: noon}))

	// Output:
	// stop container web (cri://b): Container web definition changed, will be restarted
	// start container web, restart 1: its definition changed
	// start container log, restart 3: it exited with 1, restart policy Always; not before 2026-01-01T12:00:20Z (back-off 20s)
}

// A pod is restored from a checkpoint, in which its init container had succeeded. The start of one of its containers is
// interrupted, and continued by the next plan.
func ExampleCompute_restore() {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", UID: "u1"},
		Spec: v1.PodSpec{
			InitContainers: []v1.Container{{Name: "setup", Image: "busybox"}},
			Containers:     []v1.Container{{Name: "web", Image: "nginx"}, {Name: "cache", Image: "redis"}},
		},
	}
	in := plan.Input{Pod: pod, RestoreFrom: "/var/lib/kubelet/pod-checkpoints/checkpoint-1"}
	fmt.Println(plan.Compute(in))

	in.Status = &runtime.PodStatus{
		UID:       "u1",
		Sandboxes: []runtime.SandboxStatus{{ID: "box", State: runtime.SandboxReady}},
		Containers: []runtime.ContainerStatus{{
			ID: "cri://b", Name: "cache", SandboxID: "box", State: runtime.ContainerCreated, Hash: plan.Hash(&pod.Spec.Containers[1]),
		}, {
			ID: "cri://a", Name: "web", SandboxID: "box", State: runtime.ContainerRunning, Hash: plan.Hash(&pod.Spec.Containers[0]),
		}},
	}
	fmt.Println()
	fmt.Println(plan.Compute(in))

	// Output:
	// restore a sandbox and its containers from /var/lib/kubelet/pod-checkpoints/checkpoint-1, attempt 0
	// start container web: its process continues from the checkpoint
	// start container cache: its process continues from the checkpoint
	//
	// continue to restore the pod from /var/lib/kubelet/pod-checkpoints/checkpoint-1
	// resume container cache: it was created and never started
}

// The sidecar has started, web fails its liveness probe, and the memory limit of cache
// is raised in place.
func ExampleCompute_probesAndResize() {
	amount := func(memory string) v1.ResourceRequirements {
		return v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)}}
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", UID: "u1"},
		Spec: v1.PodSpec{
			InitContainers: []v1.Container{{
				Name: "proxy", Image: "envoy", RestartPolicy: new(v1.ContainerRestartPolicyAlways), StartupProbe: new(v1.Probe),
			}},
			Containers: []v1.Container{{
				Name: "web", Image: "nginx", LivenessProbe: &v1.Probe{TerminationGracePeriodSeconds: new(int64(5))},
			}, {
				Name: "cache", Image: "redis", Resources: amount("512Mi"),
			}},
		},
	}
	status := &runtime.PodStatus{
		UID:       "u1",
		Sandboxes: []runtime.SandboxStatus{{ID: "box", State: runtime.SandboxReady}},
		Containers: []runtime.ContainerStatus{
			{ID: "cri://b", Name: "cache", SandboxID: "box", State: runtime.ContainerRunning, Resources: new(amount("256Mi"))},
			{ID: "cri://a", Name: "proxy", SandboxID: "box", State: runtime.ContainerRunning},
		},
	}
	probes := &runtime.ProbeResults{}

	fmt.Println(plan.Compute(plan.Input{Pod: pod, Status: status, Probes: probes}))

	status.Containers = append([]runtime.ContainerStatus{{
		ID: "cri://c", Name: "web", SandboxID: "box", State: runtime.ContainerRunning,
	}}, status.Containers...)
	probes.Startup = map[string]runtime.ProbeResult{"cri://a": runtime.ProbeSuccess}
	probes.Liveness = map[string]runtime.ProbeResult{"cri://c": runtime.ProbeFailure}
	p := plan.Compute(plan.Input{Pod: pod, Status: status, Probes: probes})
	fmt.Println(p)
	fmt.Println(p.Kill[0].Reason, *p.Kill[0].GracePeriodSeconds)

	// Output:
	// resize container cache (cri://b): memory limit from 256Mi to 512Mi
	// start container web: it has not run yet
	// stop container web (cri://c): Container web failed liveness probe, will be restarted
	// resize container cache (cri://b): memory limit from 256Mi to 512Mi
	// start container web, restart 1: it failed its liveness probe
	// LivenessProbe 5
}

// A plan is data that can be inspected and marshaled.
func ExamplePlan() {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", UID: "u1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "web", Image: "nginx"}}},
	}
	p := plan.Compute(plan.Input{Pod: pod})
	fmt.Println(p.CreateSandbox, p.Attempt)
	for _, s := range p.Start {
		fmt.Println(s.Kind, s.Name, s.Reason, s.RestartCount)
	}
	if err := json.NewEncoder(os.Stdout).Encode(p); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true 0
	// container web New 0
	// {"createSandbox":true,"start":[{"kind":"regular","name":"web","reason":"New","why":"it has not run yet","restartCount":0,"noStatus":true}]}
}
