package prober

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Change is a new result of a probe: another than before, or the first for
// that container ID (prober-62).
type Change struct {
	UID         types.UID
	Container   string
	ContainerID string
	Kind        Kind
	Result      runtime.ProbeResult
}

// Matters reports whether the pod has to be synced because of it: that a
// container lives changes nothing (prober-64, prober-65).
func (c Change) Matters() bool {
	return c.Kind != Liveness || c.Result == runtime.ProbeFailure
}
