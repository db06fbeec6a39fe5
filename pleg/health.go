package pleg

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Healthy returns nil if the last good list began no longer than
// Config.Threshold ago; the error is in the kubelet's words (pleg-25), and
// wraps why the last list failed. While hints are trusted and lists are far
// apart, what the wait is longer than Config.Period is added to the threshold.
//
// Pods that cannot be inspected and hints that do not come are not a matter of
// it (L-3): the first show in Get, pod by pod, and both in Health.
//
// Ages are measured on the monotonic clock: setting the wall clock makes
// nothing unhealthy.
func (g *Generator) Healthy() error { return g.Health().Err }

// A Health says how a Generator does: what to stop because of it is the
// reader's business (L-3).
type Health struct {
	// Err is what Healthy returns.
	Err error

	// Age is how long ago the last good list began; zero if there was none.
	Age time.Duration

	// Listing is since how long a list is under way; zero if none is. One
	// that hangs shows here first (L-6).
	Listing time.Duration

	// ListErr is why the newest list failed; nil if it did not.
	ListErr error

	// Period is how long after a list the next begins.
	Period time.Duration

	// Hints is what the hints of the runtime are worth, and HintsErr why
	// their stream ended last; nil if it never did.
	Hints    HintState
	HintsErr error

	// Pods that the runtime held when last looked at, and Stale, how many
	// could not be inspected when last tried.
	Pods, Stale int
}

// Health returns how the Generator does.
func (g *Generator) Health() Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	h := Health{
		Err:     healthy(g.listed, now, g.cfg.Threshold+g.plan.granted, g.listErr),
		ListErr: g.listErr,
		Period:  g.trust.period, Hints: g.trust.state, HintsErr: g.hintsErr,
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

// staleLocked counts the pods that could not be inspected when last tried.
func (g *Generator) staleLocked() (n int) {
	for _, r := range g.pods {
		if r.err != nil {
			n++
		}
	}
	return n
}

func healthy(last look, now time.Time, threshold time.Duration, cause error) error {
	if last.n == 0 {
		return unhealthy{errors.New("pleg has yet to be successful"), cause}
	}
	if age := now.Sub(last.at); age > threshold {
		return unhealthy{fmt.Errorf("pleg was last seen active %v ago; threshold is %v", age, threshold), cause}
	}
	return nil
}

// An unhealthy error has the kubelet's words, and the cause for errors.Is.
type unhealthy struct {
	error
	cause error
}

func (u unhealthy) Unwrap() error { return u.cause }

// String returns the state in a line, the trouble first: "healthy; listed 2s
// ago, again after 5m0s; hints are trusted; 110 pods".
func (h Health) String() string {
	var said []string
	say := func(format string, a ...any) { said = append(said, fmt.Sprintf(format, a...)) }
	if h.Err != nil {
		say("%v", h.Err)
	} else {
		say("healthy")
	}
	if h.ListErr != nil {
		say("the last list failed: %v", h.ListErr)
	}
	if h.Listing > 0 {
		say("a list has been under way for %v", h.Listing)
	}
	if h.Age > 0 {
		say("listed %v ago, again after %v", h.Age, h.Period)
	}
	switch {
	case h.Hints == HintsBroken:
		say("hints are broken (%v)", h.HintsErr)
	case h.Hints == HintsNone:
		say("no hints")
	default:
		say("hints are %s", h.Hints)
	}
	if h.Stale > 0 {
		say("%d of %d pods cannot be inspected", h.Stale, h.Pods)
	} else {
		say("%d pods", h.Pods)
	}
	return strings.Join(said, "; ")
}
