package pleg

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Hooks are told what a Generator does, for metrics. Each may be nil. They
// must not block; they may call the Generator's methods, Run and Relist
// excepted.
type Hooks struct {
	// Relisting is called when a list begins. With Relisted it shows a list
	// that hangs (L-6): the kubelet's metrics do not.
	Relisting func(start time.Time)

	// Relisted is called when a relist has ended, well or not: under Run
	// after the list was compared, under Relist after Handle was called.
	Relisted func(RelistInfo)

	// Inspected is called when the inspection of a pod has ended, from
	// several goroutines.
	Inspected func(InspectInfo)
}

// A RelistInfo tells about one relist.
type RelistInfo struct {
	Start time.Time // of the list

	// Duration of the list and the comparison; under Relist, of the
	// inspections and of Handle too.
	Duration time.Duration

	// Interval since the start of the relist before; 0 for the first.
	Interval time.Duration

	// Pods listed, and how many of them differed from what was known. Zero
	// if the list failed.
	Pods, Changed int

	// Inspected and Events count the inspections that ended and the events
	// that were delivered since the Relisted before.
	Inspected, Events int

	// Stale is how many pods could not be inspected when last tried, so that
	// an error stands in the cache.
	Stale int

	// Err is why the list failed, or nil.
	Err error
}

// An InspectInfo tells about the inspection of one pod.
type InspectInfo struct {
	UID      types.UID
	Duration time.Duration
	Err      error // nil if it succeeded
}
