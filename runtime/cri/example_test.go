package cri_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/process"
)

// A pod of two steps runs as plain processes: each SyncPod performs the actions that
// are possible now. The program's main must begin with process.Supervise.
func ExampleRuntime_SyncPod() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	processes, err := process.Open(process.Config{Dir: filepath.Join(dir, "process")})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer processes.Close(ctx)
	rt, err := cri.New(cri.Config{
		Name: process.Name, Runtime: processes, Images: processes,
		Dirs: cri.Dirs{Root: filepath.Join(dir, "root"), PodLogs: filepath.Join(dir, "logs")},
	})
	if err != nil {
		log.Fatal(err)
	}

	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "default", UID: "42"},
		Spec: v1.PodSpec{
			RestartPolicy:  v1.RestartPolicyNever,
			InitContainers: []v1.Container{{Name: "first", Image: "host", Command: []string{"sleep", "0.1"}}},
			Containers:     []v1.Container{{Name: "then", Image: "host", Command: []string{"sh", "-c", "exit 3"}}},
		},
	}
	for done := false; !done; time.Sleep(10 * time.Millisecond) {
		res, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
		if err != nil {
			log.Fatal(err)
		}
		for _, a := range res.Actions {
			fmt.Println(a.Kind, a.Target)
			done = a.Kind == runtime.KillPodSandbox
		}
	}
	status, err := rt.PodStatus(ctx, pod.UID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("exit code:", status.Container("then").ExitCode)
	// Output:
	// CreatePodSandbox job_default
	// InitContainer first
	// StartContainer then
	// KillPodSandbox job_default
	// exit code: 3
}
