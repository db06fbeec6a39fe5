package fakecri

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"sync"
	"time"
)

// The functions here make what Config.Faults asks for, out of each other. They
// may be called by many goroutines at once.

// none reports whether nothing goes wrong. Errors need not be comparable.
func (f Fault) none() bool {
	return f.Delay == 0 && !f.Lost && !f.Hang && f.Err == nil && f.Stale == 0
}

// Always is this fault for every call.
func Always(f Fault) func(Call) Fault {
	return func(Call) Fault { return f }
}

// Every is this fault for each n-th call of a method.
func Every(n int, f Fault) func(Call) Fault {
	return If(func(c Call) bool { return n > 0 && c.Number%n == 0 }, Always(f))
}

// If is faults for calls that match only.
func If(match func(Call) bool, faults func(Call) Fault) func(Call) Fault {
	return func(c Call) Fault {
		if !match(c) {
			return Fault{}
		}
		return faults(c)
	}
}

// On is faults for calls of some methods only.
func On(faults func(Call) Fault, methods ...string) func(Call) Fault {
	return If(func(c Call) bool { return slices.Contains(methods, c.Method) }, faults)
}

// Times is faults until n of them have happened.
func Times(n int, faults func(Call) Fault) func(Call) Fault {
	var mu sync.Mutex
	return func(c Call) Fault {
		f := faults(c)
		if f.none() {
			return f
		}
		mu.Lock()
		defer mu.Unlock()
		if n <= 0 {
			return Fault{}
		}
		n--
		return f
	}
}

// Until is faults until a time.
func Until(end time.Time, faults func(Call) Fault) func(Call) Fault {
	return If(func(Call) bool { return time.Now().Before(end) }, faults)
}

// First is the first of some faults that is one.
func First(faults ...func(Call) Fault) func(Call) Fault {
	return func(c Call) Fault {
		for _, of := range faults {
			if f := of(c); !f.none() {
				return f
			}
		}
		return Fault{}
	}
}

// Random is one of some faults for each call with a probability between 0 and 1.
// What happens to a call depends on the seed, on whom the call is about, and on
// how many such calls there were before it: not on the order of calls about
// different things.
func Random(seed uint64, probability float64, faults ...Fault) func(Call) Fault {
	var mu sync.Mutex
	calls := map[uint64]uint64{} // by hash, since pods come and go, and none is forgotten
	return func(c Call) Fault {
		about := hashCall(nil, c)
		mu.Lock()
		calls[about]++
		n := calls[about]
		mu.Unlock()
		var num [16]byte
		binary.LittleEndian.PutUint64(num[:], seed)
		binary.LittleEndian.PutUint64(num[8:], n)
		x := mix(hashCall(num[:], c))
		if len(faults) == 0 || !(float64(x)/math.MaxUint64 < probability) { // NaN is never
			return Fault{}
		}
		return faults[mix(x)%uint64(len(faults))]
	}
}

// hashCall is of some bytes and of whom a call is about.
func hashCall(head []byte, c Call) uint64 {
	h := fnv.New64a()
	h.Write(head)
	for _, s := range []string{c.Method, c.Pod, c.Container, c.Image} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// mix spreads the bits of x (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
