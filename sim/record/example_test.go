package record_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/sim/record"
)

// The calls of a CRI runtime are recorded, with masked environments, and read.
func Example() {
	dir, err := os.MkdirTemp("", "recording")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	recorder, err := record.New(record.Config{Dir: dir, Node: "edge-1"})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- recorder.Run(ctx) }()

	fake, err := fakecri.New(fakecri.Config{})
	if err != nil {
		log.Fatal(err)
	}
	client := recorder.RuntimeService(fake) // in production, that of a remote.Client
	pod := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "u1"}}
	_, err = client.CreateContainer(ctx, "none", &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main"},
		Envs:     []*runtimeapi.KeyValue{{Key: "PASSWORD", Value: []byte("hunter2")}},
	}, pod)
	fmt.Println(err != nil)
	stop()
	if err := <-done; err != nil {
		log.Fatal(err)
	}

	files, err := record.Files(dir)
	if err != nil {
		log.Fatal(err)
	}
	for frame, err := range record.ReadFiles(files...) {
		if err != nil {
			log.Fatal(err)
		}
		if c := frame.Call; c != nil {
			fmt.Println(c.Method, c.Error.Code, strings.Contains(string(c.Request), "hunter2"))
		}
	}
	// Output:
	// true
	// CreateContainer NotFound false
}
