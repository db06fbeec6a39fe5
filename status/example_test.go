package status_test

import (
	"context"
	"fmt"
	"log"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// A pod whose container crashes and is restarted later keeps running; the same
// exit ends a pod that never restarts.
func ExampleCompute() {
	crashed := &runtime.PodStatus{Containers: []runtime.ContainerStatus{
		{ID: "docker://1f", Name: "main", State: runtime.ContainerExited, ExitCode: 1},
	}}
	backOff := map[string]v1.ContainerStateWaiting{"main": {Reason: "CrashLoopBackOff", Message: "back-off 10s restarting failed container"}}

	for _, policy := range []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyNever} {
		pod := &v1.Pod{Spec: v1.PodSpec{RestartPolicy: policy, Containers: []v1.Container{{Name: "main"}}}}
		s := status.Compute(status.Facts{Pod: pod, Observed: crashed, Waiting: backOff, Now: time.Now()})
		fmt.Println(policy, "→", s.Phase)
		fmt.Println(" ", status.Condition(s.Conditions, v1.PodReady).Reason)
	}
	// Output:
	// Always → Running
	//   ContainersNotReady
	// Never → Failed
	//   PodFailed
}

// The manager keeps the published status of each pod and sends changes to a sink.
func ExampleManager() {
	ctx := context.Background()
	var sink status.MemorySink
	m, err := status.New(status.Config{
		Sink: &sink,
		Hooks: status.Hooks{Changed: func(i status.ChangedInfo) {
			for _, line := range status.Describe(&i.Old, &i.New) {
				fmt.Println(i.Pod.Name, line)
			}
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "6f1c"},
		Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main"}}},
	}
	main := runtime.ContainerStatus{ID: "docker://1f", Name: "main", State: runtime.ContainerRunning}
	m.Report(pod, &runtime.PodStatus{Containers: []runtime.ContainerStatus{main}}, nil, runtime.Termination{})
	main.State, main.ExitCode = runtime.ContainerExited, 3
	m.Report(pod, &runtime.PodStatus{Containers: []runtime.ContainerStatus{main}}, nil, runtime.Termination{})
	m.Finish(pod)
	_ = m.Retain(context.Background(), func(types.UID) bool { return false })
	if err := m.Flush(ctx); err != nil { // an agent calls Run(ctx), and Flush when it stops
		log.Fatal(err)
	}
	last, _ := sink.Status(pod.UID)
	fmt.Println("recorded:", last.Phase, "deleted:", sink.Deleted(pod.UID))
	// Output:
	// web container main runs
	// web Running ready=1/1 restarts=0
	// web container main exited(3)
	// web Failed ready=0/1 restarts=0
	// recorded: Failed deleted: true
}
