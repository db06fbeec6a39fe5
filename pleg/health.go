package pleg

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Healthy returns nil if the last successful list began no longer than Config.Threshold ago,
// otherwise an error with the kubelet's message that wraps the error of the last list. While the
// period is longer than Config.Period, the difference is added to the threshold.
//
// Failed inspections and missing events do not make it fail: Get returns the former for each pod,
// and Health contains both.
//
// Ages are measured with the monotonic clock.
func (g *Generator) Healthy() error { return g.Health().Err }

// A RelistHealth describes the state of a Generator.
type RelistHealth struct {
	// Err is the result of Healthy.
	Err error

	// Age is the time since the last successful list began; zero if there was none.
	Age time.Duration

	// Listing is how long a list has been in progress; zero if none is. It shows a list
	// that hangs before the other fields do.
	Listing time.Duration

	// ListErr is the error of the last list; nil if it succeeded.
	ListErr error

	// Period is how long after a list the next begins.
	Period time.Duration

	// Confidence is whether the events of a runtime.Watcher announce all changes. WatchErr is
	// the last error of the stream; nil if there was none.
	Confidence Confidence
	WatchErr   error

	// Pods is the number of pods as last read, and Stale how many of their last
	// inspections failed.
	Pods, Stale int
}

// Health returns the state of the Generator.
func (g *Generator) Health() RelistHealth {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	h := RelistHealth{
		Err:     healthy(g.listed, now, g.cfg.Threshold+g.plan.extension, g.listErr),
		ListErr: g.listErr,
		Period:  g.confidence.period(), Confidence: g.confidence.state, WatchErr: g.watchErr,
		Stale: g.staleLocked(),
	}
	if g.listed.n != 0 {
		h.Age = now.Sub(g.listed.at)
	}
	if g.listing.n != 0 {
		h.Listing = now.Sub(g.listing.at)
	}
	for _, r := range g.pods {
		if r.listed != nil {
			h.Pods++
		}
	}
	return h
}

// staleLocked returns the number of pods whose last inspection failed.
func (g *Generator) staleLocked() (n int) {
	for _, r := range g.pods {
		if r.err != nil {
			n++
		}
	}
	return n
}

func healthy(last read, now time.Time, threshold time.Duration, cause error) error {
	if last.n == 0 {
		return unhealthy{errors.New("pleg has yet to be successful"), cause}
	}
	if age := now.Sub(last.at); age > threshold {
		return unhealthy{fmt.Errorf("pleg was last seen active %v ago; threshold is %v", age, threshold), cause}
	}
	return nil
}

// An unhealthy error has the kubelet's message and wraps the cause.
type unhealthy struct {
	error
	cause error
}

func (u unhealthy) Unwrap() error { return u.cause }

// String returns the state in one line, problems first: "healthy; listed 2s
// ago, next after 5m0s; events trusted; 110 pods".
func (h RelistHealth) String() string {
	var parts []string
	add := func(format string, a ...any) { parts = append(parts, fmt.Sprintf(format, a...)) }
	if h.Err != nil {
		add("%v", h.Err)
	} else {
		add("healthy")
	}
	if h.ListErr != nil {
		add("last list failed: %v", h.ListErr)
	}
	if h.Listing > 0 {
		add("a list has been in progress for %v", h.Listing)
	}
	if h.Age > 0 {
		add("listed %v ago, next after %v", h.Age, h.Period)
	}
	switch {
	case h.Confidence == ConfidenceBroken:
		add("event stream broken (%v)", h.WatchErr)
	case h.Confidence == ConfidenceNone:
		add("no events")
	default:
		add("events %s", h.Confidence)
	}
	if h.Stale > 0 {
		add("inspection of %d of %d pods failed", h.Stale, h.Pods)
	} else {
		add("%d pods", h.Pods)
	}
	return strings.Join(parts, "; ")
}
