package prober

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Change is a new result of a probe: one that differs from the last, or the first for the
// container ID.
type Change struct {
	UID         types.UID
	Container   string
	ContainerID string
	Kind        Kind
	Result      runtime.ProbeResult
}

// NeedsSync reports whether the pod must be synced because of the change. A liveness success
// has no effect.
func (c Change) NeedsSync() bool {
	return c.Kind != Liveness || c.Result == runtime.ProbeFailure
}
