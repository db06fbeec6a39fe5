package fakecri_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// reap removes the sandboxes of containers that failed. It is a small controller, the
// code under test.
func reap(ctx context.Context, svc internalapi.RuntimeService) error {
	exited := &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_EXITED}
	list, err := svc.ListContainers(ctx, &runtimeapi.ContainerFilter{State: exited})
	if err != nil {
		return err
	}
	for _, c := range list {
		resp, err := svc.ContainerStatus(ctx, c.Id, false)
		if err != nil {
			return err
		}
		if resp.Status.ExitCode == 0 {
			continue
		}
		if err := svc.RemovePodSandbox(ctx, c.PodSandboxId); err != nil {
			return err
		}
	}
	return nil
}

// A controller is tested with pods that are ready, crash and are removed.
func Example_controller() {
	ctx := context.Background()
	web := fake.Behavior{Endpoints: []fake.Endpoint{{Port: 80, HTTP: true}}}
	fake, err := fakecri.New(fakecri.Config{Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{"web": web}}})
	if err != nil {
		log.Fatal(err)
	}
	run(ctx, fake, "a", "web")
	run(ctx, fake, "b", "web")
	pods := &http.Client{Transport: &http.Transport{DialContext: fake.DialContext}}
	resp, err := pods.Get("http://" + fake.Sandboxes("b")[0].IP + "/healthz")
	if err != nil {
		log.Fatal(err)
	}
	resp.Body.Close()
	fmt.Println("b returns", resp.Status)

	if err := fake.Exit("b", "web", 1); err != nil {
		log.Fatal(err)
	}
	if err := reap(ctx, fake); err != nil {
		log.Fatal(err)
	}
	for _, c := range fake.Containers("") {
		fmt.Println(c.Pod, c.Name, "is", c.State)
	}
	// Output:
	// b returns 200 OK
	// a web is running
}

// run runs a pod with one container.
func run(ctx context.Context, svc *fakecri.Runtime, uid, name string) {
	pod, cfg := podConfig(uid), containerConfig(uid, name)
	sandbox, err := svc.RunPodSandbox(ctx, pod, "")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := svc.PullImage(ctx, cfg.Image, nil, pod); err != nil {
		log.Fatal(err)
	}
	id, err := svc.CreateContainer(ctx, sandbox, cfg, pod)
	if err != nil {
		log.Fatal(err)
	}
	if err := svc.StartContainer(ctx, id); err != nil {
		log.Fatal(err)
	}
}
