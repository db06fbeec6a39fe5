package cri

import "time"

// A pace determines how many calls that start pods are made at a time. It follows the latency of the
// runtime: while calls in parallel take as long as one alone, their number triples; once they take
// longer, further calls would only wait inside the runtime, and slow down each other and everything
// else on the node. The zero value is the pace of a runtime whose latency is unknown.
//
// It estimates, as TCP Vegas does for packets, how many of the calls in progress wait: of n calls
// that take t each, where one alone takes base, n*(1 - base/t). The number of CPUs and the speed of
// the disk need not be known.
type pace struct {
	limit  float64                   // calls at a time; zero means paceMin
	steady bool                      // the latency has grown once: the limit no longer triples
	base   [startKinds]time.Duration // the latency of a call without others; zero: unknown
}

// A startKind is a kind of call that starts pods, in the order in which they take turns: pods that
// are nearly started are completed first.
type startKind int

const (
	startContainer startKind = iota
	createContainer
	runHostSandbox // of a pod in the host network
	runSandbox
	startKinds
)

const (
	paceMin = 2
	paceMax = 256

	// paceTolerance is how many times the base a call may take without counting as delayed: calls
	// of one kind differ from each other.
	paceTolerance = 2

	// paceGrowth is what a call that was not delayed adds to the limit before the latency has grown
	// for the first time. As many calls as the limit allows end in a round, thus 2 triples it.
	paceGrowth = 2

	// Between paceFew and paceMany delayed calls, the limit is not changed.
	paceFew, paceMany = 0.5, 1

	// paceAlone is the largest number of calls in progress whose latency counts as that of one
	// alone. Latencies of more calls can only reduce the base.
	paceAlone = 2
)

// calls returns how many calls may be made at a time.
func (p pace) calls() int { return int(max(p.limit, paceMin)) }

// after returns the pace after a call that took latency, at whose begin or end n calls were in
// progress, including it.
func (p pace) after(kind startKind, latency time.Duration, n int) pace {
	latency = max(latency, time.Microsecond)
	p.limit = max(p.limit, paceMin)
	base := &p.base[kind]
	switch {
	case *base == 0 || latency < *base:
		*base = latency
	case n <= paceAlone:
		*base += (latency - *base) / 8
	}
	delayed := float64(n) * (1 - paceTolerance*float64(*base)/float64(latency))
	switch {
	case delayed > paceMany:
		p.steady = true
		p.limit -= (delayed - paceMany) / p.limit
	case delayed >= paceFew || n < p.calls():
		// The number is right, or it was not the limit that determined the latency.
	case p.steady:
		p.limit += 1 / p.limit
	default:
		p.limit += paceGrowth
	}
	p.limit = min(max(p.limit, paceMin), paceMax)
	return p
}

// slowAfter returns the time after which a call no longer counts: it may hang.
func (p pace) slowAfter(kind startKind) time.Duration { return max(3*time.Second, 8*p.base[kind]) }
