package podworker

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// A Retainer has state for each pod, in memory or on disk, which ends with the pod: no source
// specifies it, and its worker was removed. This is the only way in which parts learn that a
// pod is gone. Every part of this module that has such state implements it.
//
// A Retainer that is also a [Handler] is called by the [Loop] as soon as workers were removed,
// before a pod of the same UID starts again. All others are called in the collections of
// garbage, which a failure repeats: agent.Config.Retainers.
type Retainer interface {
	// Retain removes the state of every pod for which keep returns false, also of pods of
	// an earlier process. It has no effect on other pods. It may be called at any time,
	// concurrently with the other methods of the part, and again with the same pods. The
	// Retain of a Handler must not block.
	//
	// keep may be called with any UID and does not block for long; it may call other parts, so
	// that Retain must not hold a lock that they wait for. Its result may change from true to
	// false, and from false to true if the pod is added again: Retain should call it shortly
	// before it removes something.
	Retain(ctx context.Context, keep func(uid types.UID) bool) error
}
