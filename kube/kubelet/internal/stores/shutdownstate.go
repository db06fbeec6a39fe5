package stores

import (
	"github.com/kubeparts/kubeparts/kube/kubelet/options"
	"github.com/kubeparts/kubeparts/shutdown"
)

// newShutdownState returns the state that the other subsystems read.
func newShutdownState(cfg options.Config, q *Queues) *shutdown.State {
	s := new(shutdown.State)
	s.Changed = func() {
		if s.Err() != nil {
			cfg.Notify("the machine shuts down; pods are being terminated")
		} else {
			cfg.Notify("the shutdown of the machine was canceled")
		}
		q.Node.Notify()
	}
	return s
}
