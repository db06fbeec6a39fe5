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

// A printer is a Handler that does nothing, and says so.
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

// Workers call a Handler for each pod, in the order of its life.
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
		Hooks: podworker.Hooks{Worked: func(i podworker.SyncInfo) {
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

// Explain says of a pod why it is where it is.
func ExampleWorkers_Explain() {
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
	e, _ := workers.Explain("new")
	fmt.Println(e.State, "because of", e.Wait, "after", e.For)
	// Output:
	// waiting because of turn after old
}
