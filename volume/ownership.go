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
	o := Ownership{Group: *r.FSGroup, ReadOnly: r.Spec != nil && r.Spec.ReadOnly, Progress: r.Progress}
	o.OnlyOnMismatch = !always && r.FSGroupPolicy != nil && *r.FSGroupPolicy == v1.FSGroupChangeOnRootMismatch
	return SetOwnership(ctx, dir, o)
}

// An Ownership specifies the group and the modes of the files of a volume.
type Ownership struct {
	// Group is the GID of all files.
	Group int64

	// ReadOnly grants the group read access only.
	ReadOnly bool

	// OnlyOnMismatch skips the volume if its root directory has the group and mode.
	OnlyOnMismatch bool

	// Parallel is the number of directories processed concurrently. Zero means 4 per CPU, at
	// most 64.
	Parallel int

	// Progress is called every 30 seconds, on another goroutine, with the number of entries
	// inspected and changed. It may be nil.
	Progress func(visited, changed int64, elapsed time.Duration)
}
