package sim

import (
	"context"
	"fmt"
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// A podCapacity is an admitter that limits the number of pods on the node: those that
// it admitted and that have not terminated, and those that ran before the agent started.
type podCapacity struct {
	run   *run
	agent *Agent

	mu       sync.Mutex
	admitted map[types.UID]bool
}

// Admit implements pipeline.Admitter.
func (c *podCapacity) Admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	c.agent.pace("Admit", pod.UID) // the seed decides which pod is admitted first
	c.run.mu.Lock()
	capacity, node := c.run.podCapacity, c.run.node
	c.run.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if capacity > 0 && node != nil {
		if used := c.used(pod.UID, node); used >= capacity {
			return &runtime.Rejection{
				Reason:  "OutOfpods",
				Message: fmt.Sprintf("Node didn't have enough resource: pods, requested: 1, used: %d, capacity: %d", used, capacity),
			}
		}
	}
	c.admitted[pod.UID] = true
	return nil
}

// used returns the number of other pods that count against the capacity.
func (c *podCapacity) used(except types.UID, node *Node) (n int) {
	active := map[types.UID]bool{}
	for _, s := range node.States() {
		active[s.UID] = s.State < podworker.Cleaning
	}
	maps.DeleteFunc(c.admitted, func(uid types.UID, _ bool) bool { return !active[uid] })
	for uid, running := range active {
		observed, err := node.agent.PLEG().Get(uid)
		if running && uid != except && (c.admitted[uid] || err == nil && observed.Running()) {
			n++
		}
	}
	return n
}
