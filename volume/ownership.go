package volume

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
)

// SetOwnership changes the group and modes of the files below dir to the request's FSGroup, and does
// nothing if there is none. A plugin that supports fsGroup calls it at the end of SetUp. FSGroupPolicy
// applies only to volumes that outlive their pods; always ignores it (rule vol-47).
func (r *Request) SetOwnership(ctx context.Context, dir string, always bool) error {
	if r.FSGroup == nil {
		return nil
	}
	o := ownership{group: *r.FSGroup, readOnly: r.Spec != nil && r.Spec.ReadOnly, progress: r.Progress}
	o.onlyOnMismatch = !always && r.FSGroupPolicy != nil && *r.FSGroupPolicy == v1.FSGroupChangeOnRootMismatch
	return setOwnership(ctx, dir, o)
}

// An ownership specifies the group and the modes of the files of a volume.
type ownership struct {
	group          int64 // of all files
	readOnly       bool  // the group may not write
	onlyOnMismatch bool  // nothing is changed if the root directory has the group and mode

	// progress is called every ownershipProgressPeriod, on another goroutine. It may be nil.
	progress func(visited, changed int64, elapsed time.Duration)
}
