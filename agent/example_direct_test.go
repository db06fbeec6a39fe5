package agent_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// A functions starts a pod for each call of a function. It is the source and the sink of an agent: no
// API server is between the request of a pod and its start, or between its end and the result.
type functions struct {
	requests chan request
	ended    chan *v1.Pod // with the final status
}

type request struct {
	pod    *v1.Pod
	result chan v1.PodPhase // capacity 1
}

// Call runs a pod until it has ended.
func (f *functions) Call(ctx context.Context, pod *v1.Pod) (v1.PodPhase, error) {
	r := request{pod, make(chan v1.PodPhase, 1)}
	select {
	case f.requests <- r:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	select {
	case phase := <-r.result:
		return phase, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Run is a podsource.Func. It passes the set of the pods that have not ended each time that it has changed.
func (f *functions) Run(ctx context.Context, set func([]*v1.Pod)) error {
	var pods []*v1.Pod
	results := map[types.UID]chan v1.PodPhase{}
	for {
		set(slices.Clone(pods))
		select {
		case <-ctx.Done():
			return nil
		case r := <-f.requests:
			pods = append(pods, r.pod)
			results[r.pod.UID] = r.result
		case ended := <-f.ended:
			if result, ok := results[ended.UID]; ok { // delivery is at least once
				result <- ended.Status.Phase
				delete(results, ended.UID)
				pods = slices.DeleteFunc(pods, func(p *v1.Pod) bool { return p.UID == ended.UID })
			}
		}
	}
}

// UpdatePodStatus implements status.Sink.
func (f *functions) UpdatePodStatus(ctx context.Context, pod *v1.Pod, s v1.PodStatus) error {
	if !status.Terminal(s.Phase) {
		return nil
	}
	select {
	case f.ended <- &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Status: s}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// DeletePod implements status.Sink.
func (f *functions) DeletePod(context.Context, *v1.Pod) error { return nil }

// Direct starts: a program that starts pods itself, such as the node part of a platform of functions or of
// sandboxes, passes them to the agent, and receives their statuses.
func Example_directStarts() {
	rt := new(runtimetest.Runtime) // in production: runtime/cri
	rt.Behave("resize-image", fake.Behavior{Exit: &fake.Exit{After: 10 * time.Millisecond}})
	f := &functions{requests: make(chan request), ended: make(chan *v1.Pod)}
	a, err := agent.New(agent.Config{
		Runtime: rt, Sources: map[string]podsource.PodSource{"functions": podsource.Func(f.Run)}, Sink: f,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- a.Run(ctx) }()
	for i := range 3 {
		name := fmt.Sprint("call-", i)
		phase, err := f.Call(ctx, manifest.Default(&v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
			Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main", Image: "resize-image"}}},
		}))
		fmt.Println(name, phase, err)
	}
	cancel()
	fmt.Println(<-stopped)
	// Output:
	// call-0 Succeeded <nil>
	// call-1 Succeeded <nil>
	// call-2 Succeeded <nil>
	// <nil>
}
