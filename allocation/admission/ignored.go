package admission

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podfields"
	"github.com/kubeparts/kubeparts/runtime"
)

// maxIgnoredFields bounds the event about ignored fields.
const maxIgnoredFields = 10

// IgnoredFields is a pipeline.Admitter that admits every pod and records an event
// "IgnoredFields" about the fields of its spec that have no effect on the node
// (docs/pod-fields.md lists them). It is the last of the admitters, so that only
// admitted pods have such an event. The function must not block.
type IgnoredFields func(runtime.Event)

// Admit returns nil.
func (record IgnoredFields) Admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	fields := podfields.Ignored(&pod.Spec)
	if len(fields) == 0 {
		return nil
	}
	if more := len(fields) - maxIgnoredFields; more > 0 {
		fields = append(fields[:maxIgnoredFields:maxIgnoredFields], fmt.Sprintf("and %d more", more))
	}
	record(runtime.Event{Object: runtime.PodRef(pod), Type: v1.EventTypeWarning, Reason: "IgnoredFields", Message: strings.Join(fields, "; ")})
	return nil
}
