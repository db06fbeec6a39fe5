package sim

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/podworker"
)

// A capacity lets as many pods into a node as there is room for: those that it
// let in and that have not stopped, and those that ran before the agent began.
type capacity struct {
	run   *run
	agent *Agent

	mu sync.Mutex
	in map[types.UID]*v1.Pod
}

// Admit implements podworker.Admitter.
func (c *capacity) Admit(_ context.Context, pod *v1.Pod) *podworker.Refusal {
	c.agent.pace("Admit", pod.UID) // who asks first gets the room
	c.run.mu.Lock()
	room, node := c.run.room, c.run.node
	c.run.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if room > 0 && node != nil {
		for _, refused := range admission.Fit(pod, c.others(node), admission.Node{
			Allocatable: v1.ResourceList{v1.ResourcePods: *resource.NewQuantity(int64(room), resource.DecimalSI)},
		}) {
			return &podworker.Refusal{Reason: refused.Reason, Message: refused.Message}
		}
	}
	c.in[pod.UID] = pod
	return nil
}

// others returns the pods that take room.
func (c *capacity) others(node *Node) (out []*v1.Pod) {
	active := map[types.UID]bool{}
	for _, s := range node.States() {
		active[s.UID] = s.State < podworker.Cleaning
	}
	for uid, pod := range c.in {
		if !active[uid] {
			delete(c.in, uid)
			continue
		}
		out = append(out, pod)
	}
	for uid, on := range active {
		if seen, err := node.changes.Get(uid); on && c.in[uid] == nil && err == nil && seen.Running() {
			out = append(out, &v1.Pod{}) // it counts, whatever it is
			out[len(out)-1].UID = uid
		}
	}
	return out
}
