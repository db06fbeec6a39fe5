package pleg_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A Generator compares two looks at the runtime and tells what changed.
func ExampleGenerator_Relist() {
	ctx := context.Background()
	rt := new(runtimetest.Runtime)
	gen, err := pleg.New(pleg.Config{Runtime: rt, Handle: func(e pleg.Event) { fmt.Println(e) }})
	if err != nil {
		log.Fatal(err)
	}
	look := func() {
		if err := gen.Relist(ctx); err != nil {
			log.Fatal(err)
		}
	}

	rt.Start("web", "nginx")
	look()
	if err := rt.Exit("web", "nginx", 1); err != nil {
		log.Fatal(err)
	}
	look()
	status, err := gen.Get("web")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("exit code", status.Container("nginx").ExitCode)
	rt.Remove("web")
	look()
	// Output:
	// web ContainerStarted sandbox-1
	// web ContainerStarted memory://nginx-2
	// web ContainerDied memory://nginx-2
	// exit code 1
	// web ContainerDied sandbox-1
	// web ContainerRemoved sandbox-1
	// web ContainerRemoved memory://nginx-2
}

// Run looks again and again. Those who cannot wait for the next look ask for
// what is newer than now.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	rt := new(runtimetest.Runtime)
	rt.Start("web", "nginx")
	events := make(chan pleg.Event, 2) // Handle may block: then events wait
	gen, err := pleg.New(pleg.Config{Runtime: rt, Handle: func(e pleg.Event) { events <- e }})
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- gen.Run(ctx) }()
	fmt.Println(<-events)
	fmt.Println(<-events)

	if err := rt.Exit("web", "nginx", 0); err != nil {
		log.Fatal(err)
	}
	status, err := gen.GetNewerThan(ctx, "web", time.Now())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("nginx has", status.Container("nginx").State)
	fmt.Println(<-events)

	stop()
	fmt.Println("Run returned", <-done)
	// Output:
	// web ContainerStarted sandbox-1
	// web ContainerStarted memory://nginx-2
	// nginx has exited
	// web ContainerDied memory://nginx-2
	// Run returned <nil>
}

// A second listener is told what the first is told, at a pace of its own. It
// may come later, and begins with what there is.
func ExampleGenerator_Follow() {
	ctx, stop := context.WithCancel(context.Background())
	rt := new(runtimetest.Runtime)
	rt.Start("web", "nginx")
	gen, err := pleg.New(pleg.Config{Runtime: rt, Handle: func(e pleg.Event) { fmt.Println("worker:", e) }})
	if err != nil {
		log.Fatal(err)
	}
	if err := gen.Relist(ctx); err != nil {
		log.Fatal(err)
	}

	left := 2
	err = gen.Follow(ctx, func(e pleg.Event) {
		fmt.Println("auditor:", e)
		if left--; left == 0 {
			stop()
		}
	})
	fmt.Println("Follow returned", err)
	fmt.Println(gen.Health().Hints, gen.Healthy())
	// Output:
	// worker: web ContainerStarted sandbox-1
	// worker: web ContainerStarted memory://nginx-2
	// auditor: web ContainerStarted sandbox-1
	// auditor: web ContainerStarted memory://nginx-2
	// Follow returned <nil>
	// none <nil>
}
