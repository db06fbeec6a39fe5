package sim_test

import (
	"context"
	"fmt"
	"log"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/status"
)

// unstable is a controller's decision, which is to be tested: which pods have
// crashed so often that an operator should inspect them?
func unstable(pods []*v1.Pod) (names []string) {
	for _, pod := range pods {
		for _, c := range pod.Status.ContainerStatuses {
			if c.RestartCount >= 3 && !status.IsReady(&pod.Status) {
				names = append(names, pod.Name)
			}
		}
	}
	return names
}

// A controller-like function is tested against pods that start, crash and become
// ready. An hour passes in no time.
func TestUnstablePodsAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := &runtimetest.Runtime{Backoff: 10 * time.Second}
		rt.Behave("flaky", fake.Behavior{Exit: &fake.Exit{After: 5 * time.Second, Code: 1}})
		rt.Behave("slow", fake.Behavior{StartDelay: 20 * time.Second})
		node, stop := started(t, sim.NodeConfig{Runtime: rt})
		defer stop()
		node.Set(small("flaky"), small("slow"))

		_, err := node.Wait(t.Context(), "slow", func(s v1.PodStatus) bool { return status.IsReady(&s) })
		require.NoError(t, err)
		assert.Empty(t, unstable(node.Pods()), "one crash is nothing")
		_, err = node.Wait(t.Context(), "flaky", func(s v1.PodStatus) bool { return s.ContainerStatuses[0].RestartCount == 3 })
		require.NoError(t, err)
		time.Sleep(10 * time.Second) // it has crashed again
		assert.Equal(t, []string{"flaky"}, unstable(node.Pods()))

		rt.Behave("flaky", fake.Behavior{}) // mended
		time.Sleep(time.Hour)
		assert.Empty(t, unstable(node.Pods()))
	})
}

// small returns a pod of one container whose image has its name.
func small(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: name}}},
	}
}

// A node whose pods live, for a test of something that watches them.
func ExampleNode() {
	rt := new(runtimetest.Runtime)
	node, err := sim.NewNode(sim.NodeConfig{Runtime: rt})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- node.Run(ctx) }()

	node.Set(small("web"))
	ready := func(s v1.PodStatus) bool { return status.IsReady(&s) }
	s, _ := node.Wait(ctx, "web", ready)
	fmt.Println(s.Phase, s.ContainerStatuses[0].RestartCount)

	_ = rt.Exit("web", "app", 1)
	s, _ = node.Wait(ctx, "web", func(s v1.PodStatus) bool { return s.ContainerStatuses[0].RestartCount == 1 && ready(s) })
	fmt.Println(s.Phase, s.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode)

	cancel()
	fmt.Println(<-done)
	// Output:
	// Running 0
	// Running 1
	// <nil>
}
