package podworker_test

import (
	"context"
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A watchful handler prints the state of a container each time its pod is synced.
type watchful struct{ synced chan string }

func (h watchful) Sync(_ context.Context, w podworker.SyncRequest) (podworker.SyncResult, error) {
	if c := w.Status.Container("nginx"); c != nil {
		h.synced <- c.State.String()
	}
	return podworker.SyncResult{Idle: true}, nil
}
func (watchful) Terminate(context.Context, podworker.SyncRequest) error { return nil }
func (watchful) Cleanup(context.Context, podworker.SyncRequest) error   { return nil }

// Events go to a Table, which exists before the Loop; the
// workers read statuses from the Generator.
func Example_pleg() {
	ctx, stop := context.WithCancel(context.Background())
	rt := new(runtimetest.Runtime)
	rt.Start("web", "nginx")
	handler := watchful{synced: make(chan string)}

	table := new(podworker.Table)
	gen, err := pleg.New(pleg.Config{Runtime: rt, Handle: func(e pleg.Event) {
		if e.Type != pleg.ContainerRemoved { // the pod needs no sync for it
			table.PodChanged(e.UID)
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	workers, err := podworker.New(podworker.Config{Table: table, Handler: handler, StatusCache: gen})
	if err != nil {
		log.Fatal(err)
	}
	loop, err := podworker.NewLoop(podworker.LoopConfig{Workers: workers, Sources: []string{"file"}})
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- gen.Run(ctx) }()
	go func() { done <- loop.Run(ctx) }()

	loop.AddPods([]*v1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "web", Name: "web"}}})
	for state := ""; state != "running"; {
		state = <-handler.synced
	}
	fmt.Println("nginx runs")
	if err := rt.Exit("web", "nginx", 1); err != nil {
		log.Fatal(err)
	}
	for state := ""; state != "exited"; {
		state = <-handler.synced
	}
	fmt.Println("nginx exited")

	go func() {
		for range handler.synced { // a sync may be in progress
		}
	}()
	stop()
	fmt.Println(<-done, <-done)
	// Output:
	// nginx runs
	// nginx exited
	// <nil> <nil>
}
