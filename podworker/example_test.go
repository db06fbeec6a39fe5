package podworker_test

import (
	"context"
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
)

// A printer is a Handler that prints its calls.
type printer struct{ cleaned chan struct{} }

func (printer) Sync(_ context.Context, w podworker.SyncRequest) (podworker.SyncResult, error) {
	fmt.Println("sync", w.Pod.Name)
	return podworker.SyncResult{}, nil
}

func (printer) Terminate(_ context.Context, w podworker.SyncRequest) error {
	fmt.Println("terminate", w.Pod.Name, "within", *w.GracePeriodSeconds, "s")
	return nil
}

func (p printer) Cleanup(_ context.Context, w podworker.SyncRequest) error {
	fmt.Println("clean up", w.Pod.Name)
	close(p.cleaned)
	return nil
}

// Workers call a Handler for each pod, in the order of its lifecycle.
func ExampleWorkers() {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "42", Name: "web", Namespace: "default"},
		Spec:       v1.PodSpec{TerminationGracePeriodSeconds: new(int64(30))},
	}
	handler := printer{cleaned: make(chan struct{})}
	synced := make(chan struct{})
	workers, err := podworker.New(podworker.Config{
		Handler:     handler,
		StatusCache: observed{}, // in an agent: a pleg.Generator
		Hooks: podworker.Hooks{Synced: func(i podworker.SyncInfo) {
			if i.First {
				close(synced)
			}
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- workers.Run(ctx) }()

	workers.Update(pod, true)
	<-synced
	workers.Kill(pod.UID, podworker.KillOptions{GracePeriodSeconds: new(int64(5))})
	<-handler.cleaned
	cancel()
	fmt.Println("run:", <-stopped)
	// Output:
	// sync web
	// terminate web within 5 s
	// clean up web
	// run: <nil>
}

// A Snapshot contains why a pod does not run.
func ExampleWorkers_Snapshot() {
	workers, err := podworker.New(podworker.Config{
		Handler:     printer{},
		StatusCache: observed{}, // in an agent: a pleg.Generator
	})
	if err != nil {
		log.Fatal(err)
	}
	manifest := func(uid types.UID) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
			UID: uid, Name: "web", Namespace: "default", Annotations: map[string]string{"kubernetes.io/config.source": "file"},
		}}
	}
	workers.Update(manifest("old"), true)
	workers.Update(manifest("new"), true) // the manifest was changed
	e, _ := workers.Snapshot("new")
	fmt.Printf("%v: %s: %v\n", e.State, e.Step, e.BlockedBy)
	// Output:
	// waiting: wait for other pods to terminate: [old]
}
