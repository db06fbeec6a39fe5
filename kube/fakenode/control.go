package fakenode

import (
	"context"
	"fmt"

	"github.com/kubeparts/kubeparts/podworker"
)

// Exit makes the running container of a pod exit with code, immediately. If container is
// empty, it is the first container of the pod. It returns an error if the pod is on no
// node, or the container is not running.
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

// Crash terminates the sandbox and all containers of a pod with exit code 137, as a reboot
// of the machine would. They are restarted in a new sandbox with another address.
func (n *Nodes) Crash(namespace, name string) error {
	a, pod, err := n.find(namespace, name)
	if err != nil {
		return err
	}
	a.runtime.Crash(pod.UID)
	return nil
}

// SetReady sets whether the containers of a pod are ready. It takes precedence over their
// behavior.
func (n *Nodes) SetReady(namespace, name string, ready bool) error {
	a, pod, err := n.find(namespace, name)
	if err != nil {
		return err
	}
	a.mu.Lock()
	d := a.behaviors[pod.UID]
	if d != nil {
		d.ready = &ready
	}
	a.mu.Unlock()
	if d == nil {
		return fmt.Errorf("fakenode: pod %s/%s is no longer on node %s", namespace, name, a.spec.Name)
	}
	a.agent.Loop().PodChanged(pod.UID)
	return nil
}

// Evict evicts a pod as under node pressure: the pod fails with the reason Evicted and
// message, and its object remains. It blocks until no container of the pod runs. It returns
// an error if the pod had terminated before, since its status does not become Evicted then,
// if the nodes stop first, or if ctx is done.
//
// Evictions by the API (kubectl drain) do not require this package: the API server deletes
// the pod with its grace period.
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

// SetHealth makes a node not ready, with the reason err, or ready again if err is nil. Its
// pods keep running. The status is sent within about a second.
func (n *Nodes) SetHealth(node string, err error) error {
	a := n.byName[node]
	if a == nil {
		return fmt.Errorf("fakenode: unknown node %q; want one of %v", node, n.Names())
	}
	a.mu.Lock()
	a.health = err
	a.mu.Unlock()
	a.node.Update()
	return nil
}

// States returns the state of each pod worker of a node, for diagnostics; nil if there is
// no such node.
func (n *Nodes) States(node string) []podworker.PodState {
	a := n.byName[node]
	if a == nil {
		return nil
	}
	return a.agent.Workers().States()
}
