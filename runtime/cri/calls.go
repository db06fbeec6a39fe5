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

// A CallInfo describes one call of the CRI.
type CallInfo struct {
	// Operation is the name in the kubelet's metrics: "run_podsandbox",
	// "list_containers", "pull_image".
	Operation string

	Duration time.Duration

	// Err is the error of the call, nil if it succeeded.
	Err error
}

// calls decorates the calls of the CRI: it sets a deadline, reports the call to
// Hooks.Called, and classifies errors.
type calls struct {
	timeout time.Duration
	hook    func(CallInfo)
}

// forever is the limit of calls without a time limit.
const forever time.Duration = -1

// call makes one call, which may take up to limit.
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

// do is call for calls without a result.
func (c *calls) do(ctx context.Context, operation string, limit time.Duration, do func(ctx context.Context) error) error {
	_, err := call(ctx, c, operation, limit, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// limitOfStop returns the time limit of a StopContainer: the grace period and the
// timeout.
func (c *calls) limitOfStop(graceSeconds int64) time.Duration {
	const most = 1 << 31 // seconds; more would overflow a time.Duration
	return time.Duration(min(max(graceSeconds, 0), most))*time.Second + c.timeout
}

// limitOfExec returns the time limit of an ExecSync. Without a timeout it is limited by
// its context only.
func (c *calls) limitOfExec(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return forever
	}
	return timeout + c.timeout
}

// classifyExec adds context.DeadlineExceeded to the error of an ExecSync whose command
// exceeded its timeout. The client of a socket reports it as text, without a code.
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
