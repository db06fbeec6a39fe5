package fake

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The functions below return functions that determine the fault of each call, which are safe
// for concurrent use if their arguments are.

// Always returns f for every call.
func Always(f Fault) func(Call) Fault {
	return func(Call) Fault { return f }
}

// Every returns f for every n-th call of each method.
func Every(n int, f Fault) func(Call) Fault {
	return If(func(c Call) bool { return n > 0 && c.Number%n == 0 }, Always(f))
}

// If applies faults to calls that match.
func If(match func(Call) bool, faults func(Call) Fault) func(Call) Fault {
	return func(c Call) Fault {
		if !match(c) {
			return Fault{}
		}
		return faults(c)
	}
}

// On applies faults to calls of the given methods.
func On(faults func(Call) Fault, methods ...string) func(Call) Fault {
	return If(func(c Call) bool { return slices.Contains(methods, c.Method) }, faults)
}

// Times applies faults until n calls had a fault.
func Times(n int, faults func(Call) Fault) func(Call) Fault {
	var mu sync.Mutex
	return func(c Call) Fault {
		f := faults(c)
		if f.None() {
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

// After applies faults after n calls.
func After(n int, faults func(Call) Fault) func(Call) Fault {
	var calls atomic.Int64
	return func(c Call) Fault {
		if calls.Add(1) <= int64(n) {
			return Fault{}
		}
		return faults(c)
	}
}

// Until applies faults until end.
func Until(end time.Time, faults func(Call) Fault) func(Call) Fault {
	return If(func(Call) bool { return time.Now().Before(end) }, faults)
}

// First returns the first result of faults that is a fault.
func First(faults ...func(Call) Fault) func(Call) Fault {
	return func(c Call) Fault {
		for _, of := range faults {
			if f := of(c); !f.None() {
				return f
			}
		}
		return Fault{}
	}
}

// Random returns one of faults with the given probability, from 0 to 1. The result for a
// call depends on the seed, on its Method, Pod, Container and Image, and on the number of
// earlier calls with the same ones; not on the order of other calls.
func Random(seed uint64, probability float64, faults ...Fault) func(Call) Fault {
	var mu sync.Mutex
	calls := map[uint64]uint64{} // by hash, because entries are never deleted
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
		if len(faults) == 0 || !(float64(x)/math.MaxUint64 < probability) { // false for NaN
			return Fault{}
		}
		return faults[mix(x)%uint64(len(faults))]
	}
}

// hashCall hashes head and the identity of a call.
func hashCall(head []byte, c Call) uint64 {
	h := fnv.New64a()
	h.Write(head)
	for _, s := range []string{c.Method, string(c.Pod), c.Container, c.Image} {
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
