package replay

import (
	"fmt"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// removals begins the kinds of the lanes with the removals by the garbage collection. A collection is
// requested when a pod has been removed, and serves all requests that have arrived: whether a
// container that exits at that time is removed now or in the next period depends on the Go scheduler.
const removals = "removal of "

// garbagePeriod is longer than the period of an agent's garbage collection.
const garbagePeriod = 65 * time.Second

// removal reports whether the lane has the removals of a container or sandbox.
func (k laneKey) removal() bool { return strings.HasPrefix(k.kind, removals) }

// toleranceOf returns the largest difference of times of a lane.
func (c *comparer) toleranceOf(key laneKey) time.Duration {
	if key.removal() {
		return max(c.tolerance, garbagePeriod)
	}
	return c.tolerance
}

// failedRemoval returns the failed removal that is the nearest to a time; nil if one that succeeded
// is nearer, or if none failed. What cannot be removed is tried again by each collection, and how
// many there are depends on the Go scheduler: failed removals are matched from the start.
func (l *lane) failedRemoval(at time.Duration) (nearest *output) {
	for _, o := range l.outputs {
		nearer := nearest == nil || (o.begin-at).Abs() < (nearest.begin-at).Abs()
		switch {
		case o.failed() && nearer:
			nearest = o
		case o.failed():
		case o.matched: // of an earlier container with this name and attempt
			nearest = nil
		case nearer:
			return nil
		default:
			return nearest
		}
	}
	return nearest
}

// failed reports whether a call has failed.
func (o *output) failed() bool { return o.call != nil && o.call.err != nil }

// stoppedAgain returns the sandbox that a call stops although it was stopped before; nil for other calls. Such
// calls have no effect and are not compared: the garbage collection makes them, and a termination that begins
// before an agent has inspected a pod of an earlier one. recorded is nil for a call of the replayed agent.
func (w *world) stoppedAgain(method string, request []byte, recorded *call) *replayed {
	if method != "StopPodSandbox" {
		return nil
	}
	t := w.things[parse(request).PodSandboxID]
	switch {
	case t == nil:
		return nil
	case t.thing.create == nil && len(t.listed) > 0 && t.listed[0].value.State == runtimeapi.PodSandboxState_SANDBOX_NOTREADY: // by an earlier agent
	case recorded == nil && t.stop.step == after:
	case recorded != nil && t.thing.stop != nil && recorded.begin >= t.thing.stop.end:
	default:
		return nil
	}
	return t
}

// stopAgain returns the recorded call for a call of the replayed agent; nil if there is none.
func (t *replayed) stopAgain(now, tolerance time.Duration) *call {
	for i, c := range t.again {
		if (c.begin - now).Abs() <= tolerance {
			t.again = append(t.again[:i:i], t.again[i+1:]...)
			return c
		}
	}
	return nil
}

func (t *thing) String() string {
	if t.sandbox == "" {
		return fmt.Sprintf("the sandbox, attempt %d", t.attempt)
	}
	return fmt.Sprintf("%s, attempt %d", t.name, t.attempt)
}
