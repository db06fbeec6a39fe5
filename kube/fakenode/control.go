package fakenode

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/status"
)

// Exit makes the running container of a pod exit with code, immediately. If container is
// empty, it is the first container of the pod. It returns an error if the pod is on no node
// or has terminated, the container is not running, or code is not from 0 to 255.
func (n *Nodes) Exit(namespace, name, container string, code int32) error {
	if code < 0 || code > 255 {
		return fmt.Errorf("fakenode: exit: exit code %d is not from 0 to 255", code)
	}
	return n.exit("exit", namespace, name, container, func(a *agent, pod *v1.Pod, container string) error {
		return a.runtime.Exit(pod.UID, container, code)
	})
}

// OOM terminates the running container of a pod with exit code 137 and the reason OOMKilled,
// as if it had exceeded its memory limit. It has the arguments and errors of Exit.
func (n *Nodes) OOM(namespace, name, container string) error {
	return n.exit("oom", namespace, name, container, func(a *agent, pod *v1.Pod, container string) error {
		return a.runtime.OOM(pod.UID, container)
	})
}

func (n *Nodes) exit(operation, namespace, name, container string, do func(a *agent, pod *v1.Pod, container string) error) error {
	a, pod, err := n.findPod(namespace, name)
	if err != nil {
		return fmt.Errorf("fakenode: %s: %w", operation, err)
	}
	if container == "" {
		container = pod.Spec.Containers[0].Name
	}
	if err := do(a, pod, container); err != nil {
		return fmt.Errorf("fakenode: %s: %w", operation, a.notRunning(pod, container))
	}
	return nil
}

// Crash terminates the sandbox and all containers of a pod with exit code 137. They are
// restarted in a new sandbox with another address. It returns an error if the pod is on no
// node or has terminated.
func (n *Nodes) Crash(namespace, name string) error {
	a, pod, err := n.findPod(namespace, name)
	if err != nil {
		return fmt.Errorf("fakenode: crash: %w", err)
	}
	a.runtime.Crash(pod.UID)
	return nil
}

// SetReady sets whether the containers of a pod are ready. It takes precedence over their
// behavior. It returns an error if the pod is on no node or has terminated.
func (n *Nodes) SetReady(namespace, name string, ready bool) error {
	a, pod, err := n.findPod(namespace, name)
	if err == nil {
		err = a.setPodReady(pod, ready)
	}
	if err != nil {
		return fmt.Errorf("fakenode: set ready: %w", err)
	}
	return nil
}

// Evict evicts a pod as under node pressure: the pod fails with the reason Evicted and
// message, and its object remains. If message is empty, it is "The node was low on resource:
// memory.". It blocks until no container of the pod runs. It returns an error if the pod is
// on no node or has terminated, if the node stops first, or if ctx is done.
//
// Evictions by the API ([Nodes.Drain], kubectl drain) delete the pod with its grace period.
func (n *Nodes) Evict(ctx context.Context, namespace, name, message string) error {
	a, pod, err := n.findPod(namespace, name)
	if err != nil {
		return fmt.Errorf("fakenode: evict: %w", err)
	}
	if message == "" {
		message = lowOnMemory
	}
	select {
	case outcome := <-a.evict(pod.UID, message):
		if outcome != podworker.Stopped {
			return fmt.Errorf("fakenode: evict: pod %s/%s: %v", namespace, name, outcome)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("fakenode: evict: pod %s/%s: %w", namespace, name, context.Cause(ctx))
	}
}

// States returns the state of each pod worker of a node, for diagnostics; nil if there is
// no such node.
func (n *Nodes) States(node string) []podworker.PodState {
	h := n.find(node)
	if h == nil {
		return nil
	}
	return h.current().agent.Table().States()
}

// findPod returns a pod that has not terminated, and the agent that runs it.
func (n *Nodes) findPod(namespace, name string) (*agent, *v1.Pod, error) {
	for _, h := range n.all() {
		a := h.current()
		pod := a.agent.Table().PodByName(namespace, name)
		if pod == nil {
			continue
		}
		if h.hasFailed() {
			return nil, nil, fmt.Errorf("node %s of pod %s/%s has failed", h.spec.Name, namespace, name)
		}
		if s, ok := a.agent.Status().Status(pod.UID); isTerminal(pod) || ok && status.Terminal(s.Phase) {
			phase := pod.Status.Phase
			if ok {
				phase = s.Phase
			}
			return nil, nil, fmt.Errorf("pod %s/%s has terminated: its phase is %s", namespace, name, phase)
		}
		return a, pod, nil
	}
	return nil, nil, fmt.Errorf("no pod %s/%s is on a fake node: it may not be bound yet; wait until its phase is Running", namespace, name)
}

// notRunning returns the reason why a container of a pod does not run.
func (a *agent) notRunning(pod *v1.Pod, container string) error {
	var names []string
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			names = append(names, list[i].Name)
		}
	}
	if !slices.Contains(names, container) {
		return fmt.Errorf("pod %s/%s has no container %q; want one of %v", pod.Namespace, pod.Name, container, names)
	}
	reason := "it has not started"
	s, _ := a.agent.Status().Status(pod.UID)
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		switch {
		case c.Name != container:
		case c.State.Waiting != nil:
			reason = "it is waiting: " + c.State.Waiting.Reason
		case c.State.Running != nil:
			reason = "it has just exited; wait until its status shows another instance"
		case c.State.Terminated != nil:
			reason = fmt.Sprintf("it has exited with code %d", c.State.Terminated.ExitCode)
		}
	}
	return fmt.Errorf("container %s of pod %s/%s is not running: %s", container, pod.Namespace, pod.Name, reason)
}

// setPodReady sets the readiness of the containers of a pod.
func (a *agent) setPodReady(pod *v1.Pod, ready bool) error {
	a.mu.Lock()
	d := a.behaviors[pod.UID]
	if d != nil {
		d.ready = &ready
	}
	a.mu.Unlock()
	if d == nil {
		return fmt.Errorf("pod %s/%s is no longer on node %s", pod.Namespace, pod.Name, a.spec.Name)
	}
	a.agent.Table().PodChanged(pod.UID)
	return nil
}
