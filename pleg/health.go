package pleg

import (
	"errors"
	"fmt"
	"time"
)

// Healthy returns nil if the last good list began no longer than
// Config.Threshold ago; the error is in the kubelet's words (pleg-25). Pods
// that cannot be inspected and hints that do not come are not a matter of
// health (L-3): the first show in Get, pod by pod.
//
// Ages are measured on the monotonic clock: setting the wall clock makes
// nothing unhealthy.
func (g *Generator) Healthy() error {
	g.mu.Lock()
	last := g.listed
	g.mu.Unlock()
	return healthy(last, time.Now(), g.cfg.Threshold)
}

func healthy(last look, now time.Time, threshold time.Duration) error {
	if last.n == 0 {
		return errors.New("pleg has yet to be successful")
	}
	if age := now.Sub(last.at); age > threshold {
		return fmt.Errorf("pleg was last seen active %v ago; threshold is %v", age, threshold)
	}
	return nil
}
