package agent_test

import (
	"context"
	"fmt"
	"log"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// Seats is a part with state for each pod: it assigns a number to each pod that is admitted.
type seats struct {
	mu              sync.Mutex
	of              map[types.UID]int
	assigned, freed chan types.UID
}

func (s *seats) Admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[pod.UID] = len(s.of) + 1
	s.assigned <- pod.UID
	return nil
}

// Retain implements podworker.Retainer. It is called when no container of a removed pod runs.
func (s *seats) Retain(_ context.Context, keep func(types.UID) bool) error {
	s.mu.Lock()
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(s.of)), keep)
	for _, uid := range gone {
		delete(s.of, uid)
	}
	s.mu.Unlock()
	for _, uid := range gone {
		s.freed <- uid
	}
	return nil
}

// A part of the caller that has state for each pod is one of agent.Config.Retainers. It is called
// when a pod is gone, after its containers were removed, and again after an error.
func Example_retainer() {
	source, part := new(podsource.Memory), &seats{of: map[types.UID]int{}, assigned: make(chan types.UID, 1), freed: make(chan types.UID, 1)}
	source.Set(newJob("busybox"))
	a, err := agent.New(agent.Config{
		Runtime: new(runtimetest.Runtime), Sources: map[string]podsource.PodSource{"jobs": source}, Sink: new(status.MemorySink),
		Subsystems: agent.Subsystems{Admitters: pipeline.Admitters{part}},
		Retainers:  []podworker.Retainer{part},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- a.Run(ctx) }()
	fmt.Println("assigned:", <-part.assigned)
	source.Set()
	fmt.Println("freed:", <-part.freed)
	cancel()
	fmt.Println("run:", <-stopped)
	// Output:
	// assigned: job-1
	// freed: job-1
	// run: <nil>
}
