package untrusted

import (
	"context"
	"errors"
)

// ErrMounted reports that something is mounted in a tree that was to be removed.
var ErrMounted = errors.New("something is mounted there")

// RemoveTree removes path and everything below it on the same mount. It neither
// follows links nor removes anything below a mount point, also not one that
// appears while it runs; it returns ErrMounted at the first mount point that it
// finds, path included, and leaves the rest of the tree. A path that does not
// exist is not an error. The number of open descriptors and the memory do not
// grow with the tree.
//
// On systems other than Linux a mount is found by its device, before anything is
// removed. On Windows nothing is: links to other volumes are removed as links.
func RemoveTree(ctx context.Context, path string) error { return removeTree(ctx, path) }
