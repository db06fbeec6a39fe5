package sim

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"
)

// moment returns a time between 20 µs and 2 ms.
func moment(roll uint64) time.Duration {
	return 20*time.Microsecond + time.Duration(roll%1_980_000)
}

// dice returns a number drawn from a seed and from what it is for.
func dice(seed, salt, a, b uint64, words ...string) uint64 {
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
	x := h.Sum64() // its low bits alone are poor
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// A window is a Fault step while it lasts.
type window struct {
	step  Step
	index uint64 // of the step
	until time.Time
}

// sinkCalls are the methods that Fault steps for "sink" hit; those for "runtime"
// hit all others but apartCalls.
var sinkCalls = []string{"UpdatePodStatus", "DeletePod"}

// apartCalls are neither of the runtime nor of the sink.
var apartCalls = []string{hintsCall, sourceCall, probeCall, setUpCall, tearDownCall}

// listCalls are the lists that Stale faults age.
var listCalls = []string{"Pods", "ListContainers", "ListPodSandbox"}

func (w window) hits(what Call) bool {
	switch w.step.Kind {
	case Sick:
		if what.Method != probeCall {
			return false
		}
	case Stale:
		// One of a pod is asked for in order to act at once; no runtime forgets
		// what it has answered already.
		if !slices.Contains(listCalls, what.Method) || what.UID != "" || what.Of != "" {
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
	case "runtime":
		return !slices.Contains(sinkCalls, what.Method) && !slices.Contains(apartCalls, what.Method)
	default:
		return false
	}
}

// The names of calls that are no methods.
const (
	hintsCall  = "hints"
	sourceCall = "source"
	probeCall  = "Probe" // a run of a probe

	setUpCall    = "SetUp" // of a volume
	tearDownCall = "TearDown"
)

// fault returns what goes wrong with a call that is made now.
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
