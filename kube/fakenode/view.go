package fakenode

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A View is what a server of the kubelet's API reads of a node; it implements Pods of package
// kube/server.
type View struct{ of *host }

// View returns the view of a node; false if these nodes have none of this name.
func (n *Nodes) View(node string) (View, bool) {
	h := n.find(node)
	return View{of: h}, h != nil
}

// Runtime returns the runtime of the node. Its pods must only be read.
func (v View) Runtime() *runtimetest.Runtime { return v.of.runtime }

// Healthy returns why the node does not sync pods; nil if it does.
func (v View) Healthy() error { return v.of.current().agent.Healthy() }

// Pods returns the pods of the node with their current statuses.
func (v View) Pods() []*v1.Pod {
	a := v.of.current()
	pods := a.agent.Table().Desired()
	for i, pod := range pods {
		pods[i] = a.withStatus(pod)
	}
	return pods
}

// Pod returns a pod of the node with its current status; false if it has none of this name.
func (v View) Pod(namespace, name string) (*v1.Pod, bool) {
	a := v.of.current()
	pod := a.agent.Table().PodByName(namespace, name)
	if pod == nil {
		return nil, false
	}
	return a.withStatus(pod), true
}

// withStatus returns a pod as the API server has it, with its current status.
func (a *agent) withStatus(pod *v1.Pod) *v1.Pod {
	a.mu.Lock()
	if d := a.behaviors[pod.UID]; d != nil {
		pod = d.source // without the probes of withProbes
	}
	a.mu.Unlock()
	s, ok := a.agent.Status().Status(pod.UID)
	if !ok {
		return pod
	}
	reported := *pod
	reported.Status = s
	return &reported
}
