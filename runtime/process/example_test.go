//go:build linux || darwin

package process_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/process"
)

// A container is a command of this host. The program calls Supervise as the
// first statement of main; here TestMain does.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "process")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	rt, err := process.Open(process.Config{Dir: filepath.Join(dir, "state")})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close(ctx)

	pod, err := rt.RunPodSandbox(ctx, &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "greeter", Namespace: "default", Uid: "1"},
		LogDirectory: filepath.Join(dir, "logs"),
	}, "")
	if err != nil {
		log.Fatal(err)
	}
	id, err := rt.CreateContainer(ctx, pod, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "hello"},
		Command:  []string{"echo", "hello from the host"},
		LogPath:  "hello/0.log",
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := rt.StartContainer(ctx, id); err != nil {
		log.Fatal(err)
	}
	for range time.Tick(10 * time.Millisecond) {
		resp, err := rt.ContainerStatus(ctx, id, false)
		if err != nil {
			log.Fatal(err)
		}
		if st := resp.GetStatus(); st.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
			fmt.Println(st.GetReason(), st.GetExitCode())
			break
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "logs", "hello", "0.log"))
	if err != nil {
		log.Fatal(err)
	}
	_, line, _ := strings.Cut(string(text), " ") // without the time
	fmt.Print(line)
	if err := rt.RemovePodSandbox(ctx, pod); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Completed 0
	// stdout F hello from the host
}
