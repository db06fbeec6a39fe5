package status

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// A Sink records the statuses of the node's pods, for example in the API server, in files
// or in memory.
//
// A [Manager] calls it on goroutines of its own: sequentially for one pod, concurrently for
// different pods. A call may block, and must return soon after ctx is done.
//
// Delivery is at least once: after an error the call is repeated, possibly with a newer status,
// until it returns nil. Both methods must therefore be idempotent, and must return nil if the
// pod no longer exists (deleted, or replaced by one with another UID): an error would be
// repeated forever.
//
// The sink may keep status and pod, and must not change them.
type Sink interface {
	// UpdatePodStatus records the status of pod. Conditions that this node does not own (see
	// [Owned]) are in status as they were in pod.Status.
	UpdatePodStatus(ctx context.Context, pod *v1.Pod, status v1.PodStatus) error

	// DeletePod reports that nothing of the pod is left on this node and that its final status
	// was recorded, so that its record may be deleted. It returns nil if the pod does not
	// exist.
	DeletePod(ctx context.Context, pod *v1.Pod) error
}
