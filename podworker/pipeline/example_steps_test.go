package pipeline_test

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// licenses limits how many pods run at the same time.
type licenses struct {
	free chan struct{} // contains an element for each license that is free
	held sync.Map      // of types.UID
}

// acquire blocks until the pod has a license, is deleted, or exceeds its deadline.
func (l *licenses) acquire(ctx context.Context, req podworker.SyncRequest) error {
	if _, ok := l.held.Load(req.UID); ok {
		return nil // acquired in an earlier sync
	}
	fmt.Println(req.Pod.Name, "waits for a license")
	select {
	case <-l.free:
		l.held.Store(req.UID, nil)
		fmt.Println(req.Pod.Name, "has a license")
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release has no effect if the pod has no license.
func (l *licenses) release(_ context.Context, req podworker.SyncRequest) error {
	if _, ok := l.held.LoadAndDelete(req.UID); ok {
		l.free <- struct{}{}
	}
	return nil
}

// printed is a subsystem for volumes.
type printed struct{}

func (printed) Mount(_ context.Context, pod *v1.Pod) (map[string]runtime.Volume, error) {
	fmt.Println(pod.Name, "mounts its volumes")
	return nil, nil
}

func (printed) Unmount(context.Context, *v1.Pod) error { return nil }

// A pod waits for a license before its volumes are mounted, and returns it after its cleanup. An agent
// sets Steps by a function in its Config.Adjust; this example calls the Pipeline directly.
func ExampleStep() {
	l := &licenses{free: make(chan struct{}, 1)}
	l.free <- struct{}{} // for one pod at a time
	p, err := pipeline.New(pipeline.Config{
		Runtime:   new(runtimetest.Runtime),
		Resources: pipeline.Resources{Volumes: printed{}},
		Steps: []pipeline.Step{
			{Name: "acquire license", Before: pipeline.MountVolumes, Run: l.acquire},
			{Name: "release license", Before: pipeline.FinishPod, Run: l.release},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := func(name string) podworker.SyncRequest {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(name), Name: name, Namespace: "default"}}
		return podworker.SyncRequest{UID: pod.UID, Pod: pod, Status: &runtime.PodStatus{UID: pod.UID}}
	}
	_, _ = p.Sync(context.Background(), request("first"))

	deleted, cancel := context.WithCancel(context.Background())
	cancel() // the second pod is deleted before a license is free
	_, err = p.Sync(deleted, request("second"))
	fmt.Println(err)

	_ = p.Cleanup(context.Background(), request("first"))
	_, _ = p.Sync(context.Background(), request("third"))
	// Output:
	// first waits for a license
	// first has a license
	// first mounts its volumes
	// second waits for a license
	// pipeline: acquire license: context canceled
	// third waits for a license
	// third has a license
	// third mounts its volumes
}
