package cri

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/kubeparts/kubeparts/runtime"
)

// A CallInfo tells of one call of the CRI.
type CallInfo struct {
	// Operation is named as in the kubelet's metrics (rt-152):
	// "run_podsandbox", "list_containers", "pull_image" …
	Operation string

	Duration time.Duration

	// Err that the call failed with; nil: it did not.
	Err error
}

// calls makes each call of the CRI with a deadline of its own, tells Hooks.Called
// of it, and gives errors their class.
type calls struct {
	timeout time.Duration
	hook    func(CallInfo)
}

// forever is the limit of a call that has none.
const forever time.Duration = -1

// call makes one call that may take as long as limit.
func call[T any](ctx context.Context, c *calls, operation string, limit time.Duration, do func(ctx context.Context) (T, error)) (T, error) {
	begun := time.Now()
	own := ctx
	if limit != forever {
		var cancel context.CancelFunc
		own, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	out, err := do(own)
	if err != nil {
		err = classify(ctx, own, limitError(err))
	}
	if c.hook != nil {
		c.hook(CallInfo{Operation: operation, Duration: time.Since(begun), Err: err})
	}
	return out, err
}

// do is call for what answers nothing.
func (c *calls) do(ctx context.Context, operation string, limit time.Duration, do func(ctx context.Context) error) error {
	_, err := call(ctx, c, operation, limit, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// limitOfStop is how long a StopContainer may take: the grace and then some.
func (c *calls) limitOfStop(graceSeconds int64) time.Duration {
	const most = 1 << 31 // seconds; more would overflow
	return time.Duration(min(max(graceSeconds, 0), most))*time.Second + c.timeout
}

// limitOfExec is how long an ExecSync may take. One that has no timeout runs
// until its context ends.
func (c *calls) limitOfExec(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return forever
	}
	return timeout + c.timeout
}

// commandsTime says of an ExecSync that failed because the command's own time was
// up that it did (rt-149). The client of a socket has put it into words already,
// and no code is left.
func classifyExec(ctx context.Context, cmd []string, timeout time.Duration, err error) error {
	switch {
	case err == nil || timeout <= 0 || ctx.Err() != nil || errors.Is(err, runtime.ErrUnavailable):
		return err
	case strings.HasPrefix(err.Error(), "command timed out"):
		return &classified{err, context.DeadlineExceeded}
	case hasCode(err, codes.DeadlineExceeded):
		return &classified{fmt.Errorf("command timed out: %q did not end within %v: %w", cmd, timeout, err), context.DeadlineExceeded}
	}
	return err
}
