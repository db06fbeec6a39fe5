package status

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// A StatusSink records what this node knows of its pods: in the API server, in
// a file, in memory.
//
// A [Manager] calls it from its own goroutines: in order and never twice at a
// time for one pod, in parallel for different pods. A call may block, and
// returns soon after its ctx ended.
//
// Delivery is at least once: after an error the same call is made again,
// later and perhaps with a newer status, until it returns nil. So both methods
// are idempotent, and a sink that learns that a pod is gone for good (deleted,
// or replaced by one with another UID) returns nil: an error would be retried
// for ever.
//
// The sink may keep the status and the pod, and changes neither.
type StatusSink interface {
	// UpdatePodStatus records the status of pod. Conditions that are not this
	// node's to say (st-36) are in status as they were in pod.Status.
	UpdatePodStatus(ctx context.Context, pod *v1.Pod, status v1.PodStatus) error

	// DeletePod says that nothing of the pod is left on this node and its
	// final status was recorded, so that its record may go. Deleting a pod
	// that is not there is no error.
	DeletePod(ctx context.Context, pod *v1.Pod) error
}
