package fakenode

import (
	"context"
	"fmt"

	"github.com/kubeparts/kubeparts/podworker"
)

// Exit has the running container of a pod exit with the code, now. An empty
// container is the pod's first one.
func (n *Nodes) Exit(namespace, name, container string, code int32) error {
	a, pod, err := n.find(namespace, name)
	if err != nil {
		return err
	}
	if container == "" {
		container = pod.Spec.Containers[0].Name
	}
	if err := a.runtime.Exit(pod.UID, container, code); err != nil {
		return fmt.Errorf("fakenode: exit: %w", err)
	}
	return nil
}

// Crash has all of a pod die at once, as when its machine is started anew: its
// containers end with 137 and begin again in a new sandbox, with another address.
func (n *Nodes) Crash(namespace, name string) error {
	a, pod, err := n.find(namespace, name)
	if err != nil {
		return err
	}
	a.runtime.Crash(pod.UID)
	return nil
}

// SetReady says whether the containers of a pod are ready from now on, whatever its
// behaviour says.
func (n *Nodes) SetReady(namespace, name string, ready bool) error {
	a, pod, err := n.find(namespace, name)
	if err != nil {
		return err
	}
	a.mu.Lock()
	d := a.declared[pod.UID]
	if d != nil {
		d.ready = &ready
	}
	a.mu.Unlock()
	if d == nil {
		return fmt.Errorf("fakenode: pod %s/%s is not on node %s any more", namespace, name, a.spec.Name)
	}
	a.whole.Loop().PodChanged(pod.UID)
	return nil
}

// Evict has the node of a pod evict it, as when it lacks memory: the pod fails with
// reason Evicted and this message, and its object stays. It returns when nothing of
// the pod runs any more. It returns an error if the pod had terminated before, since
// its status does not become Evicted then, if the nodes stop first, and if ctx is
// done.
//
// An eviction by the API (kubectl drain) needs nothing of this package: the API
// server deletes the pod, with its grace period.
func (n *Nodes) Evict(ctx context.Context, namespace, name, message string) error {
	a, pod, err := n.find(namespace, name)
	if err != nil {
		return err
	}
	select {
	case outcome := <-a.evict(pod.UID, message):
		if outcome != podworker.Stopped {
			return fmt.Errorf("fakenode: evict %s/%s: pod not evicted: %v", namespace, name, outcome)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("fakenode: evict %s/%s: %w", namespace, name, context.Cause(ctx))
	}
}

// SetHealth makes a node not ready, for the reason given, or ready again (nil). Its
// pods live on. The API server hears of it in about a second.
func (n *Nodes) SetHealth(node string, trouble error) error {
	a := n.byName[node]
	if a == nil {
		return fmt.Errorf("fakenode: there is no node %q; there are %v", node, n.Names())
	}
	a.mu.Lock()
	a.health = trouble
	a.mu.Unlock()
	a.node.Update()
	return nil
}

// States tells how the life of each pod of a node stands, and what comes next: to
// explain why a test's pod is not where it should be. Nil: there is no such node.
func (n *Nodes) States(node string) []podworker.PodState {
	a := n.byName[node]
	if a == nil {
		return nil
	}
	return a.whole.Workers().States()
}
