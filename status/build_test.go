package status_test

import (
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// t0 is the start time of the tests.
var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// podOf returns a pod with the policy and a regular container of each name.
func podOf(policy v1.RestartPolicy, names ...string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-web", Generation: 1},
		Spec:       v1.PodSpec{RestartPolicy: policy},
	}
	for _, name := range names {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name, Image: "img/" + name})
	}
	return pod
}

func withInit(pod *v1.Pod, names ...string) *v1.Pod {
	for _, name := range names {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Name: name, Image: "img/" + name})
	}
	return pod
}

func withSidecar(pod *v1.Pod, names ...string) *v1.Pod {
	for _, name := range names {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{
			Name: name, Image: "img/" + name, RestartPolicy: new(v1.ContainerRestartPolicyAlways),
		})
	}
	return pod
}

func named(pod *v1.Pod, name string) *v1.Pod {
	pod.Name, pod.UID = name, types.UID("uid-"+name)
	return pod
}

// Container statuses as the API shows them.

func up(name string) v1.ContainerStatus {
	return v1.ContainerStatus{Name: name, ContainerID: "x://" + name + "-0", Ready: true, Started: new(true),
		State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(t0)}}}
}

func notStarted(c v1.ContainerStatus) v1.ContainerStatus {
	c.Ready, c.Started = false, new(false)
	return c
}

func done(name string, code int32) v1.ContainerStatus {
	return v1.ContainerStatus{Name: name, ContainerID: "x://" + name + "-0", Ready: false, Started: new(false),
		State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, ContainerID: "x://" + name + "-0"}}}
}

func waits(name string) v1.ContainerStatus {
	return v1.ContainerStatus{Name: name, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}}}
}

func loops(name string, code int32) v1.ContainerStatus {
	c := done(name, code)
	c.LastTerminationState = c.State
	c.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	return c
}

// Instances as the runtime reports them; n is the number of earlier ones.

func instance(name string, n int32, state runtime.ContainerState) runtime.ContainerStatus {
	c := runtime.ContainerStatus{
		ID: "x://" + name + "-" + string('0'+rune(n)), Name: name, SandboxID: "x://sandbox", State: state, RestartCount: n,
		Image: "img/" + name, ImageRef: "sha256:" + name, CreatedAt: t0.Add(time.Duration(n) * time.Minute),
	}
	if state != runtime.ContainerCreated {
		c.StartedAt = c.CreatedAt.Add(time.Second)
	}
	return c
}

func runningC(name string, n int32) runtime.ContainerStatus {
	return instance(name, n, runtime.ContainerRunning)
}

func exitedC(name string, n, code int32) runtime.ContainerStatus {
	c := instance(name, n, runtime.ContainerExited)
	c.ExitCode, c.FinishedAt, c.Reason = code, c.StartedAt.Add(10*time.Second), "Error"
	if code == 0 {
		c.Reason = "Completed"
	}
	return c
}

// seen returns an observation of a pod with one ready sandbox; containers are
// given newest first.
func seen(containers ...runtime.ContainerStatus) *runtime.PodStatus {
	return &runtime.PodStatus{
		UID: "uid-web", Name: "web", Namespace: "default", IPs: []string{"10.0.0.7"},
		Sandboxes:  []runtime.SandboxStatus{{ID: "x://sandbox", State: runtime.SandboxReady, NetworkReported: true, IPs: []string{"10.0.0.7"}}},
		Containers: containers,
	}
}

// stopped is seen with its sandbox stopped.
func stopped(containers ...runtime.ContainerStatus) *runtime.PodStatus {
	s := seen(containers...)
	s.Sandboxes[0].State, s.IPs = runtime.SandboxNotReady, nil
	return s
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }
