package sim

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"
)

// latency returns a duration between 20 µs and 2 ms.
func latency(roll uint64) time.Duration {
	return 20*time.Microsecond + time.Duration(roll%1_980_000)
}

// hash returns a pseudorandom number that depends only on its arguments.
func hash(seed, salt, a, b uint64, words ...string) uint64 {
	h := fnv.New64a()
	var buf [32]byte
	binary.LittleEndian.PutUint64(buf[0:], seed)
	binary.LittleEndian.PutUint64(buf[8:], salt)
	binary.LittleEndian.PutUint64(buf[16:], a)
	binary.LittleEndian.PutUint64(buf[24:], b)
	h.Write(buf[:])
	for _, w := range words {
		h.Write([]byte(w))
		h.Write([]byte{0})
	}
	x := h.Sum64() // the low bits of FNV are not random enough
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// A faultWindow is a Fault step that lasts until a time.
type faultWindow struct {
	step  Step
	index uint64 // of the step
	until time.Time
}

// sinkCalls are the methods that Fault steps for "sink" affect; those for "runtime"
// affect all others except otherCalls.
var sinkCalls = []string{"UpdatePodStatus", "DeletePod"}

// otherCalls are calls neither of the runtime nor of the sink.
var otherCalls = []string{eventsCall, sourceCall, probeCall, setUpCall, tearDownCall, getClaimCall, prepareCall, unprepareCall}

// listCalls are the lists that Stale faults affect.
var listCalls = []string{"Pods", "ListContainers", "ListPodSandbox"}

func (w faultWindow) hits(what Call) bool {
	switch w.step.Kind {
	case Sick:
		if what.Method != probeCall {
			return false
		}
	case Stale:
		// A list for one pod precedes an action on it; a runtime does not return an
		// older state there than it has returned before.
		if !slices.Contains(listCalls, what.Method) || what.UID != "" || what.ID != "" {
			return false
		}
	case Away, Lie:
		if what.Method != prepareCall && what.Method != unprepareCall {
			return false
		}
	case Conflict, Missing:
		if !slices.Contains(sinkCalls, what.Method) {
			return false
		}
	}
	switch w.step.Calls {
	case what.Method:
		return true
	case "sink":
		return slices.Contains(sinkCalls, what.Method)
	case driverCalls:
		return what.Method == prepareCall || what.Method == unprepareCall
	case "runtime":
		return !slices.Contains(sinkCalls, what.Method) && !slices.Contains(otherCalls, what.Method)
	default:
		return false
	}
}

// The names of calls that are not methods of the runtime or of the sink.
const (
	eventsCall = "hints" // an event of the runtime
	sourceCall = "source"
	probeCall  = "Probe" // an attempt of a probe

	setUpCall    = "SetUp" // of a volume
	tearDownCall = "TearDown"

	getClaimCall  = "GetClaim"
	prepareCall   = "NodePrepareResources" // of a driver
	unprepareCall = "NodeUnprepareResources"
	driverCalls   = "driver" // both of them
)

// fault returns the fault that affects a call made now, and its Delay; empty: none.
func (r *run) fault(what Call, roll func(uint64) uint64) (FaultKind, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, w := range r.windows {
		if now.Before(w.until) && w.hits(what) && int(roll(100+w.index)%100) < w.step.Percent {
			return w.step.Kind, w.step.Delay
		}
	}
	return "", 0
}
