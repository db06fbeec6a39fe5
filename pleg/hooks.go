package pleg

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
)

// Hooks are called for metrics. Each may be nil. They must not block; they may call the
// Generator's methods except Run and Relist.
type Hooks struct {
	// Relisted is called after each relist, also after one that failed: under Run after
	// the list was compared, under Relist after Handle was called.
	Relisted func(RelistInfo)

	// Inspected is called after the inspection of a pod. It is called concurrently.
	Inspected func(InspectInfo)

	// Delivered is called after Handle was called with the events of one pod, on the
	// goroutine of Run or Relist. It is not called for Follow.
	Delivered func(DeliverInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Relisted, o.Relisted)
		compose.Add(&h.Inspected, o.Inspected)
		compose.Add(&h.Delivered, o.Delivered)
	}
	return h
}

// A RelistInfo describes one relist.
type RelistInfo struct {
	Start time.Time // of the list

	// Duration of the list and the comparison; under Relist, of the
	// inspections and of Handle too.
	Duration time.Duration

	// Interval is the time since the start of the previous relist; 0 for the first.
	Interval time.Duration

	// Pods is the number of listed pods, Changed how many of them differed from the
	// cache. Zero if the list failed.
	Pods, Changed int

	// Inspected and Events are the numbers of completed inspections and delivered
	// events since the previous call of Relisted.
	Inspected, Events int

	// Stale is the number of pods whose last inspection failed.
	Stale int

	// Period is the time until the next list, unless an earlier one is requested.
	Period time.Duration

	// Confidence is the event confidence; see RelistHealth. Unannounced is the number of
	// changes since the previous call of Relisted that no event announced in time while
	// the stream was open: more than a few indicate that the runtime loses events.
	Confidence  Confidence
	Unannounced int

	// Err is why the list failed, or nil.
	Err error
}

// An InspectInfo describes the inspection of one pod.
type InspectInfo struct {
	UID      types.UID
	Duration time.Duration
	Err      error // nil if it succeeded
}

// A DeliverInfo describes the delivery of the events of one pod.
type DeliverInfo struct {
	UID    types.UID
	Events int

	// Announced: an event of the runtime caused them. Latency is the time from the first
	// such event until Handle was called.
	Announced bool
	Latency   time.Duration

	// Duration of the calls of Handle.
	Duration time.Duration
}
