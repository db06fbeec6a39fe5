package shutdown_test

import (
	"context"
	"fmt"
	"log"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/shutdown"
)

// Plan returns the order in which pods are terminated, and GracePeriodSeconds their grace periods.
func ExamplePolicy_Plan() {
	groups, err := shutdown.NewGroups(30*time.Second, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	policy := shutdown.Policy{Groups: groups}
	pods := []*v1.Pod{podOf("dns", 2_000_000_000, 5), podOf("web", 0, 60), podOf("job", 100, 1)}
	for _, batch := range policy.Plan(pods) {
		for _, pod := range batch.Pods {
			fmt.Printf("priority %d up: %s within %d s\n", batch.Priority, pod.Name, batch.GracePeriodSeconds(pod))
		}
	}
	fmt.Println("a shutdown takes at most", policy.Total())
	// Output:
	// priority 0 up: web within 20 s
	// priority 0 up: job within 1 s
	// priority 2000000000 up: dns within 5 s
	// a shutdown takes at most 30s
}

// examplePods are the pods of a node in memory.
type examplePods []*v1.Pod

func (p examplePods) Running() []*v1.Pod { return p }

func (examplePods) Kill(_ context.Context, k shutdown.Kill) error { // KillAndWait of a podworker.Table
	fmt.Printf("%s has %d s\n", k.Pod.Name, k.GracePeriodSeconds)
	return nil
}

func (examplePods) AwaitCleaned(context.Context, *v1.Pod) error { return nil }

// exampleStatuses stands for a status.Manager.
type exampleStatuses struct{}

func (exampleStatuses) Report(context.Context, []*v1.Pod) error { return nil }

func (exampleStatuses) Flush(context.Context) error {
	fmt.Println("statuses are recorded")
	return nil
}

// A program that starts the shutdown itself.
func ExampleManager() {
	var notice shutdown.Manual
	manager, err := shutdown.New(shutdown.Config{
		Policy:   shutdown.Policy{Groups: []shutdown.Group{{Priority: 0, Period: 20 * time.Second}}},
		Triggers: []shutdown.Trigger{&notice}, // logind.Trigger on a Linux machine
		Pods:     examplePods{podOf("web", 0, 30)},
		Statuses: exampleStatuses{},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { _ = manager.Run(ctx) }()

	<-notice.Stop(time.Time{}) // the machine may stop now
	fmt.Println(manager.Err())
	fmt.Println(manager.Admit(context.Background(), nil).Message)
	// Output:
	// web has 20 s
	// statuses are recorded
	// node is shutting down
	// Pod was rejected as the node is shutting down.
}
