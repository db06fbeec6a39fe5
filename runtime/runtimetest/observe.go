package runtimetest

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Change is a change of one container or sandbox. The pointers are to copies.
type Change struct {
	UID             types.UID
	Name, Namespace string // of the pod

	// Container or Sandbox is the new state, or the last one if Removed.
	Container *runtime.ContainerStatus
	Sandbox   *runtime.SandboxStatus
	Removed   bool
}

// observeLocked calls Observe for a change of p.
func (r *Runtime) observeLocked(p *pod, c Change) {
	if r.Observe == nil {
		return
	}
	c.UID, c.Name, c.Namespace = p.uid, p.name, p.namespace
	if c.Container != nil {
		c.Container = new(*c.Container)
	}
	if c.Sandbox != nil {
		c.Sandbox = new(*c.Sandbox)
		c.Sandbox.IPs = slices.Clone(c.Sandbox.IPs)
	}
	r.Observe(c)
}
