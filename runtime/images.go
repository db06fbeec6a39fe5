package runtime

import "context"

// An ImageStore is a Runtime that keeps images on the node, and says which of them
// its containers use. Without it there is nothing that image garbage collection
// could collect.
type ImageStore interface {
	// Images lists every image, in no order. The caller owns the result.
	Images(ctx context.Context) ([]Image, error)

	// ImageUses lists what holds an image: every container there is, in any state,
	// and whoever has one mounted as a volume. It includes containers that this
	// agent did not make. On error nothing is returned: half a list would read as
	// images that nobody uses.
	ImageUses(ctx context.Context) ([]ImageUse, error)

	// RemoveImage removes an image with all its names. One that is not there is no
	// error.
	RemoveImage(ctx context.Context, image Image) error
}

// An Image is one that is on the node.
type Image struct {
	// ID by which the runtime knows it, usually a digest.
	ID string

	// Tags and Digests are the names that it has, in full.
	Tags, Digests []string

	// Size in bytes, as the runtime counts it; what is shared with other images
	// is counted in each.
	Size uint64

	// Pinned: the runtime needs it itself, and it is not to be removed (ig-19).
	Pinned bool

	// RuntimeHandler that it is for, of runtimes that keep them apart; else "".
	RuntimeHandler string
}

// An ImageUse is one user of an image. Of ID, Ref and Name at least one is there;
// what a runtime calls by which is its own affair, so that each may be an ID or a
// name.
type ImageUse struct {
	ID, Ref, Name string

	// Pod, Namespace and Container name who it is, as far as that is known.
	Pod, Namespace, Container string

	// Volume: it is mounted, not run.
	Volume bool
}
