package agent

import (
	"context"
	"time"
)

// A timeLimit limits the duration of consecutive calls. It reuses one context, which is
// canceled at the limit, until a call reaches it: creating a context with a deadline for
// each call was the largest part of the cost of a health check.
type timeLimit struct {
	parent context.Context
	d      time.Duration

	ctx    context.Context
	cancel context.CancelFunc
	timer  *time.Timer
}

// begin returns the context for a call that begins now.
func (l *timeLimit) begin() context.Context {
	if l.ctx != nil && l.ctx.Err() == nil {
		l.timer.Reset(l.d)
		return l.ctx
	}
	l.ctx, l.cancel = context.WithCancel(l.parent)
	l.timer = time.AfterFunc(l.d, l.cancel)
	return l.ctx
}

// end ends the call, and reports whether it reached the limit.
func (l *timeLimit) end() bool {
	if l.timer.Stop() {
		return false
	}
	l.cancel() // the timer is about to, and the context must not be used again
	return l.parent.Err() == nil
}

// release frees the context.
func (l *timeLimit) release() {
	if l.ctx != nil {
		l.timer.Stop()
		l.cancel()
	}
}
