package podsource

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/staticpod"
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

// The annotations by which a pod tells where it comes from. They are local to
// the node: [Merge] sets the first two, [Static] the third, and a change of
// theirs is no update (src-8).
const (
	// SourceAnnotation is the name of the source (src-2). A pod is static if
	// it has this annotation and the value is not APISource.
	SourceAnnotation = staticpod.SourceAnnotation

	// SeenAnnotation is when this agent first saw the pod, in RFC 3339 with
	// nine digits of a second (src-3).
	SeenAnnotation = staticpod.SeenAnnotation

	// HashAnnotation is the hash of a static pod's manifest, node and origin
	// (src-18). A mirror pod that shows another one is outdated.
	HashAnnotation = staticpod.HashAnnotation

	// MirrorAnnotation marks the API server's copy of a static pod.
	MirrorAnnotation = staticpod.MirrorAnnotation
)

// The names that sources have in [MergeConfig], as the kubelet has them. Other
// names are allowed; their pods are static.
const (
	FileSource = "file"
	HTTPSource = "http"
	APISource  = staticpod.APISource
)
