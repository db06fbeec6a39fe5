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

	// Delivered is called when Handle was told of one pod, on the goroutine of
	// Run or Relist. Followers of Follow have no hook.
	Delivered func(DeliverInfo)
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

	// Period is how long after this list the next begins, unless something
	// calls for an earlier one.
	Period time.Duration

	// Hints is what the hints of the runtime are worth now. Unhinted counts
	// the changes, since the Relisted before, that none came for in time
	// while their stream was open: more than a few mean that the runtime
	// loses them.
	Hints    HintState
	Unhinted int

	// Err is why the list failed, or nil.
	Err error
}

// An InspectInfo tells about the inspection of one pod.
type InspectInfo struct {
	UID      types.UID
	Duration time.Duration
	Err      error // nil if it succeeded
}

// A DeliverInfo tells that Handle was told of the changes of one pod.
type DeliverInfo struct {
	UID    types.UID
	Events int

	// Hinted: a hint led to them, and Latency is from that hint, the first if
	// there were several, until Handle was called.
	Hinted  bool
	Latency time.Duration

	// Duration is what Handle took.
	Duration time.Duration
}
