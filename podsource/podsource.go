package podsource

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// A PodSource says which pods it wants on this node.
//
// It is level-based: each call of set carries the whole set, so that a missed
// or repeated call does no harm, and there are no deltas (src-1). The first
// call means "synced": from then on what is missing is not wanted. A source
// that has nothing to say yet therefore does not call set, and one that
// failed sends nothing rather than half; what it said last stays in force.
//
// Run calls set from one goroutine at a time, and set may block until the
// pods have been taken (src-11). The pods belong to the source: set copies
// what it keeps and changes nothing, and the source changes nothing of a pod
// that it has passed. Each pod has a name, a namespace, and a UID that is its
// own; it is defaulted ([Default]).
//
// Run blocks until ctx ends, and then returns nil. An error says that it
// cannot go on; [Merge] starts it again after a while. A source that will
// never change its mind may return nil early: its pods stay.
type PodSource interface {
	Run(ctx context.Context, set func(pods []*v1.Pod)) error
}

// Func makes a PodSource of a function.
type Func func(ctx context.Context, set func(pods []*v1.Pod)) error

// Run calls f.
func (f Func) Run(ctx context.Context, set func(pods []*v1.Pod)) error { return f(ctx, set) }

// The names that sources have in [MergeConfig], as the kubelet has them. Other
// names are allowed; their pods are static.
const (
	FileSource = "file"
	HTTPSource = "http"
	APISource  = "api"
)
