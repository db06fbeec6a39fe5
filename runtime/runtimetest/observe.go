package runtimetest

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Change is one change of one thing that the runtime holds. What it points to
// is a copy.
type Change struct {
	UID             types.UID
	Name, Namespace string // of the pod

	// Container or Sandbox is how it is now, or was last if Removed: it is gone.
	Container *runtime.ContainerStatus
	Sandbox   *runtime.SandboxStatus
	Removed   bool
}

// observeLocked tells Observe of a change of p.
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
