package eviction

// Unexported identifiers that external tests use.
const (
	AnnotationExplanation  = annotationExplanation
	DedicatedImageFS       = dedicatedImageFS
	DeleteUnusedContainers = deleteUnusedContainers
	DeleteUnusedImages     = deleteUnusedImages
	SingleFS               = singleFS
	SplitImageFS           = splitImageFS
)

var (
	LayoutByStats = layoutByStats
	MemoryLevels  = memoryLevels
	Observe       = observe
)
