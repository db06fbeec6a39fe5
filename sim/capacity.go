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

// A capacity lets as many pods into a node as there is room for: those that it
// let in and that have not stopped, and those that ran before the agent began.
type capacity struct {
	run   *run
	agent *Agent

	mu sync.Mutex
	in map[types.UID]bool
}

// Admit implements podworker.Admitter.
func (c *capacity) Admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	c.agent.pace("Admit", pod.UID) // who asks first gets the room
	c.run.mu.Lock()
	room, node := c.run.room, c.run.node
	c.run.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if room > 0 && node != nil {
		if used := c.others(pod.UID, node); used >= room {
			return &runtime.Rejection{
				Reason:  "OutOfpods",
				Message: fmt.Sprintf("Node didn't have enough resource: pods, requested: 1, used: %d, capacity: %d", used, room),
			}
		}
	}
	c.in[pod.UID] = true
	return nil
}

// others returns how many pods take room beside that one.
func (c *capacity) others(besides types.UID, node *Node) (n int) {
	active := map[types.UID]bool{}
	for _, s := range node.States() {
		active[s.UID] = s.State < podworker.Cleaning
	}
	maps.DeleteFunc(c.in, func(uid types.UID, _ bool) bool { return !active[uid] })
	for uid, on := range active {
		seen, err := node.agent.PLEG().Get(uid)
		if on && uid != besides && (c.in[uid] || err == nil && seen.Running()) {
			n++
		}
	}
	return n
}
