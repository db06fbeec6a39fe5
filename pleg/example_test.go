package pleg_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// Relist compares the runtime with its last observed state and reports the changes.
func ExampleGenerator_Relist() {
	ctx := context.Background()
	rt := new(runtimetest.Runtime)
	gen, err := pleg.New(pleg.Config{Runtime: rt, Handle: func(e pleg.Event) { fmt.Println(e) }})
	if err != nil {
		log.Fatal(err)
	}
	relist := func() {
		if err := gen.Relist(ctx); err != nil {
			log.Fatal(err)
		}
	}

	rt.Start("web", "nginx")
	relist()
	if err := rt.Exit("web", "nginx", 1); err != nil {
		log.Fatal(err)
	}
	relist()
	status, err := gen.Get("web")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("exit code", status.Container("nginx").ExitCode)
	rt.Remove("web")
	relist()
	// Output:
	// web ContainerStarted sandbox-1
	// web ContainerStarted memory://nginx-2
	// web ContainerDied memory://nginx-2
	// exit code 1
	// web ContainerDied sandbox-1
	// web ContainerRemoved sandbox-1
	// web ContainerRemoved memory://nginx-2
}

// Run relists periodically. GetNewerThan does not wait for the next relist.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	rt := new(runtimetest.Runtime)
	rt.Start("web", "nginx")
	events := make(chan pleg.Event, 2) // events are pending while Handle blocks
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

// A second listener receives the same events without delaying the first. Its first events
// describe the current state.
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
	fmt.Println(gen.Health().Confidence, gen.Healthy())
	// Output:
	// worker: web ContainerStarted sandbox-1
	// worker: web ContainerStarted memory://nginx-2
	// auditor: web ContainerStarted sandbox-1
	// auditor: web ContainerStarted memory://nginx-2
	// Follow returned <nil>
	// none <nil>
}

// A Table notifies a podworker.Loop of the events. The Workers read statuses, and their Handler
// requests relists.
func Example_podworker() {
	rt := new(runtimetest.Runtime)
	table := new(podworker.Table)
	gen, err := pleg.New(pleg.Config{Runtime: rt, Handle: func(e pleg.Event) { table.PodChanged(e.UID) }})
	if err != nil {
		log.Fatal(err)
	}
	pipeline, err := pipeline.New(pipeline.Config{Runtime: rt, Relister: gen})
	if err != nil {
		log.Fatal(err)
	}
	workers, err := podworker.New(podworker.Config{Table: table, Handler: pipeline, StatusCache: gen})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 2)
	go func() { ran <- gen.Run(ctx) }()
	go func() { ran <- workers.Run(ctx) }()
	stop()
	fmt.Println(<-ran, <-ran)
	// Output:
	// <nil> <nil>
}
