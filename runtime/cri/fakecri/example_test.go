package fakecri_test

import (
	"context"
	"fmt"
	"log"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A pod runs, crashes and is inspected. Every client of the CRI observes the
// same.
func Example() {
	ctx := context.Background()
	fake, err := fakecri.New(fakecri.Config{Observe: func(c fakecri.Change) {
		fmt.Printf("%s %s: %v\n", c.Pod, c.Container, c.To)
	}})
	if err != nil {
		log.Fatal(err)
	}
	pod := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "shop", Namespace: "default", Uid: "uid-1"}}
	web := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "web"}, Image: &runtimeapi.ImageSpec{Image: "nginx:1"},
	}
	sandbox, err := fake.RunPodSandbox(ctx, pod, "")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := fake.PullImage(ctx, web.Image, nil, pod); err != nil {
		log.Fatal(err)
	}
	id, err := fake.CreateContainer(ctx, sandbox, web, pod)
	if err != nil {
		log.Fatal(err)
	}
	if err := fake.StartContainer(ctx, id); err != nil {
		log.Fatal(err)
	}
	if err := fake.Exit("uid-1", "web", 3); err != nil {
		log.Fatal(err)
	}
	resp, err := fake.ContainerStatus(ctx, id, false)
	fmt.Println(resp.GetStatus().GetReason(), resp.GetStatus().GetExitCode(), err)
	fmt.Println("again:", fake.StartContainer(ctx, id) != nil)
	// Output:
	// uid-1 : ready
	// uid-1 web: created
	// uid-1 web: running
	// uid-1 web: exited
	// Error 3 <nil>
	// again: true
}

// Half of the starts take effect but return an error, at most two of them.
func ExampleRandom() {
	const seed = 1
	lost := fake.Random(seed, 0.5, fake.Fault{Lost: true})
	faults := fake.Times(2, fake.On(lost, "StartContainer"))
	for i := range 6 {
		f := faults(fake.Call{Method: "StartContainer", Pod: "uid-1", Container: "web"})
		fmt.Println("start", i, "is lost:", f.Lost)
	}
	// Output:
	// start 0 is lost: false
	// start 1 is lost: true
	// start 2 is lost: true
	// start 3 is lost: false
	// start 4 is lost: false
	// start 5 is lost: false
}

// A script file describes containers and images, and injects faults.
func ExampleScriptConfig() {
	script, err := fake.ParseScript(`
container web log="hello %d";every=1s http=8080@5s
container crash exit=1@2s crashes=3 memory=64Mi cpu=250m
image busybox pull=2s layer=4Mi;name=base
fault StartContainer container=web count=1 error="no shim";code=Unavailable
`)
	if err != nil {
		log.Fatal(err)
	}
	cfg, err := fakecri.ScriptConfig(script, 1)
	if err != nil {
		log.Fatal(err)
	}
	rt, err := fakecri.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rt.StopContainer(context.Background(), "absent", 0), script.Containers["crash"].Exit.After)

	_, err = fake.ParseScript("container web exit=1@5")
	fmt.Println(err)
	// Output:
	// <nil> 2s
	// fake: line 1: web: "exit=1@5": "5" is not a duration, such as 2s or 1m30s
}
