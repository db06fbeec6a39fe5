package pipeline

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// Hooks observe a [Pipeline]. They are called synchronously on the goroutine of the call and
// must not block. Each may be nil.
type Hooks struct {
	// Rejected is called for each pod that fails because it was rejected
	// (kubelet_admission_rejections_total).
	Rejected func(*v1.Pod, runtime.Rejection)

	// Stepped is called after each step of a call. The steps of a call take all of its
	// time.
	Stepped func(StepInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add2(&h.Rejected, o.Rejected)
		compose.Add(&h.Stepped, o.Stepped)
	}
	return h
}

// A StepInfo describes a step of a call. Step is a constant of this package, such as [MountVolumes],
// or the Name of a [Step]. The runtime reports the steps of its own calls.
type StepInfo struct {
	UID        types.UID
	Step       string
	Begin, End time.Time
}
