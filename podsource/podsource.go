package podsource

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// A PodSource delivers the desired pods of this node.
//
// It is level-based: each call of set passes the complete set, so that a lost or repeated call is
// harmless. The first call means that the source has synced: from then on, pods that are not in the
// set are not desired. A source without a complete set must therefore not call set, neither before
// it has synced nor after a failure; its last set stays in force.
//
// Run calls set from one goroutine at a time; set may block until the pods have been taken. The pods
// are shared: neither set nor the source may change a pod that was passed, and set must not keep the
// slice. Each pod has a name, a namespace and a unique UID, and is defaulted (manifest.Default).
//
// A pod is identified by its UID, and most of its spec is immutable: a change of images, resources,
// tolerations, grace period, deadline or ephemeral containers takes effect; a change of anything else,
// such as a command or the environment, does not affect what runs, and [Merge] records the warning
// ChangeWithoutEffect. To replace the pod, pass it with another UID; [ContentUID] derives one from the
// content.
//
// Run blocks until ctx is done and then returns nil. An error means that it cannot continue; [Merge]
// starts it again after a delay. A source whose set never changes may return nil early: its pods
// stay.
type PodSource interface {
	Run(ctx context.Context, set func(pods []*v1.Pod)) error
}

// Func is a PodSource that is a function.
type Func func(ctx context.Context, set func(pods []*v1.Pod)) error

// Run calls f.
func (f Func) Run(ctx context.Context, set func(pods []*v1.Pod)) error { return f(ctx, set) }

// Names of sources in [MergeConfig], as in the kubelet. Other names are allowed; a name has no
// effect.
const (
	FileSource = "file"
	HTTPSource = "http"
	APISource  = "api"
)
