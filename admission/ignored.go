package admission

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podfields"
	"github.com/kubeparts/kubeparts/runtime"
)

// Reasons for fields that a node does not act on.
const (
	// IgnoredFieldsReason is the reason of an event about [Ignored] fields.
	IgnoredFieldsReason = "IgnoredFields"

	// ResourceClaimsReason is the reason of a pod that [ResourceClaims] rejects.
	ResourceClaimsReason = "UnexpectedAdmissionError"
)

// Ignored returns a sentence for each field that is set in pod's spec and that nothing
// in this module acts on; nil if there is none. The pod runs without it: an agent
// reports it, for instance in an event. docs/pod-fields.md lists these fields.
func Ignored(pod *v1.Pod) []string { return podfields.Ignored(&pod.Spec) }

// ResourceClaims rejects a pod that has resource claims, on a node without dynamic
// resource allocation; nil if it has none.
func ResourceClaims(pod *v1.Pod) *runtime.Rejection {
	if len(pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	return &runtime.Rejection{Reason: ResourceClaimsReason, Message: "resource claims (dynamic resource allocation) are not supported"}
}
