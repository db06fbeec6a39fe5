package containers_test

import (
	"context"
	"fmt"
	"log"
	"os"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/containers/containerstest"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A pod runs on a backend; a pod that needs a volume is rejected, because the backend does not declare
// that containers see files of this host.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, backend := context.Background(), new(containerstest.Backend)
	rt, err := containers.New(containers.Config{
		Backend: backend, Node: "node-1",
		Engine: cri.Config{Name: "example", Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "a1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "nginx", Image: "nginx:1"}}},
	}
	if _, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod}); err != nil {
		log.Fatal(err)
	}
	status, err := rt.PodStatus(ctx, pod.UID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Containers[0].Name, status.Containers[0].State)

	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	fmt.Println(rt.Admit(ctx, pod))
	// Output:
	// nginx running
	// The backend of this node does not support volume "data" in container "nginx"
}
