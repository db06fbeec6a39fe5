package eviction

var (
	Observe       = observe
	MemoryLevels  = memoryLevels
	LayoutByStats = layoutByStats
)
