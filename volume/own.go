package volume

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Own makes the files below dir belong to the request's FSGroup, as its policy
// says, and does nothing if there is none. Plugins whose volumes take part in
// fsGroup call it at the end of SetUp; the policy counts only for volumes that
// outlive their pods, others call it with always (vol-47, vol-65, vol-66).
func (r *Request) SetOwnership(ctx context.Context, dir string, always bool) error {
	if r.FSGroup == nil {
		return nil
	}
	o := Ownership{Group: *r.FSGroup, ReadOnly: r.Spec != nil && r.Spec.ReadOnly, Progress: r.Progress}
	o.OnlyOnMismatch = !always && r.FSGroupPolicy != nil && *r.FSGroupPolicy == v1.FSGroupChangeOnRootMismatch
	return SetOwnership(ctx, dir, o)
}

// Ownership says whom the files of a volume should belong to.
type Ownership struct {
	// Group of all files.
	Group int64

	// ReadOnly: the group reads, and does not write.
	ReadOnly bool

	// OnlyOnMismatch leaves the volume alone if its root is right already.
	OnlyOnMismatch bool

	// Parallel is how many directories are worked on at a time. Zero: 4 for
	// each CPU, 64 at most.
	Parallel int

	// Progress is told each 30 seconds. Nil: nobody is.
	Progress func(OwnershipProgress)
}

// OwnProgress tells how far a walk has come.
type OwnershipProgress struct {
	Dir     string
	Visited int64 // entries inspected
	Changed int64
	Elapsed time.Duration
}
