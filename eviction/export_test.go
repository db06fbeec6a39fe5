package eviction

import "reflect"

// Unexported identifiers that external tests use.
const (
	AnnotationExplanation  = annotationExplanation
	DedicatedImageFS       = dedicatedImageFS
	DeleteUnusedContainers = deleteUnusedContainers
	DeleteUnusedImages     = deleteUnusedImages
	SingleFS               = singleFS
	SplitImageFS           = splitImageFS
)

type Layout = layout

// SetLayout sets the layout of the file systems of a node.
func SetLayout(in *Inputs, l Layout) { in.layout = &l }

// Devices returns devices with the layout.
func (l layout) Devices() (root, images, layers string) {
	root = "nodefs"
	switch l {
	case dedicatedImageFS:
		return root, "imagefs", "imagefs"
	case splitImageFS:
		return root, "imagefs", root
	default:
		return root, root, root
	}
}

// SameState reports whether two plans are the same input of the next one.
func SameState(a, b *Plan) bool { return reflect.DeepEqual(a.state, b.state) }

var (
	LayoutByDevice = layoutByDevice
	LayoutByStats  = layoutByStats
	MemoryLevels   = memoryLevels
	Observe        = observe
)
