package runtime

import "context"

// An ImageStore is a Runtime that stores images on the node and reports which are in use. Image
// garbage collection requires it.
type ImageStore interface {
	// Images lists every image, in no order. The caller owns the result.
	Images(ctx context.Context) ([]Image, error)

	// ImageUses lists the users of images: every container in any state, including those that
	// this agent did not create, and every image volume. On error the result is nil: a partial
	// list would be taken for unused images.
	ImageUses(ctx context.Context) ([]ImageUse, error)

	// RemoveImage removes an image with all its references. It returns nil if the image does
	// not exist.
	RemoveImage(ctx context.Context, image Image) error
}

// An Image is an image on the node.
type Image struct {
	// ID in the runtime, usually a digest.
	ID string

	// Tags and Digests are its full references.
	Tags, Digests []string

	// Size in bytes, as the runtime reports it; layers shared with other images are included
	// in each.
	Size uint64

	// Pinned: the runtime requires the image; it must not be removed.
	Pinned bool

	// RuntimeHandler of the image, if the runtime stores images per handler; else "".
	RuntimeHandler string
}

// An ImageUse is one user of an image. At least one of ID, Ref and Name is set. Runtimes differ in
// which of the three they set, and each may be an ID or a reference.
type ImageUse struct {
	ID, Ref, Name string

	// Pod, Namespace and Container identify the user. Empty if unknown.
	Pod, Namespace, Container string

	// Volume: the image is mounted as a volume.
	Volume bool
}
