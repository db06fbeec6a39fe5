package cloud_test

import (
	"context"
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/test/cloud"
	"github.com/kubeparts/kubeparts/test/cloud/fakecloud"
)

// A pod is a machine, whose tags contain the state of the pod.
func Example() {
	ctx := context.Background()
	backend := new(fakecloud.Cloud)
	rt, err := cloud.New(cloud.Config{Cloud: backend, Node: "virtual"})
	if err != nil {
		log.Fatal(err)
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "a1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "nginx", Image: "nginx:1"}}},
	}
	res, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range res.Actions {
		fmt.Println(a.Kind, a.Target)
	}
	machines, err := backend.ListMachines(ctx, map[string]string{"kubeparts.name": "web"})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range machines {
		fmt.Println(m.Tags["kubeparts.uid"], "attempt", m.Tags["kubeparts.attempt"], "runs", m.Processes[0].Image)
	}
	// Output:
	// CreatePodSandbox web_default
	// StartContainer nginx
	// a1 attempt 0 runs nginx:1
}
