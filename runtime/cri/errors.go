package cri

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/runtime"
)

// early is how much sooner than our own clock a runtime may find that the
// deadline which we sent it has passed.
const early = 100 * time.Millisecond

// calledOff adds why ctx ended to the failure of a call that was made with it,
// so that callers need not know gRPC's codes.
func joinContextErr(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	why := contextErr(ctx, err)
	if why == nil || errors.Is(err, why) {
		return err
	}
	return errors.Join(why, err)
}

// ended returns why ctx ended, if that is what made a call with it fail.
func contextErr(ctx context.Context, err error) error {
	why := ctx.Err()
	if deadline, ok := ctx.Deadline(); why == nil && ok && time.Until(deadline) < early && hasCode(err, codes.DeadlineExceeded) {
		why = context.DeadlineExceeded
	}
	return why
}

// A classified error says what was said, and is what callers branch on.
type classified struct {
	error
	class error
}

func (c *classified) Unwrap() []error { return []error{c.error, c.class} }

// classify adds to the failure of a call its class: why the caller's ctx ended,
// or one of the runtime's. own is the context that the call was made with; if
// only that has ended, the runtime hangs.
func classify(ctx, own context.Context, err error) error {
	class := contextErr(ctx, err)
	switch {
	case class != nil:
	case own.Err() != nil:
		return &classified{fmt.Errorf("no answer in time: %w", err), runtime.ErrUnavailable}
	case hasCode(err, codes.NotFound):
		class = runtime.ErrNotFound
	case hasCode(err, codes.Unimplemented), errors.Is(err, errors.ErrUnsupported):
		class = runtime.ErrUnsupported
	case hasCode(err, codes.Unavailable), errors.Is(err, syscall.ECONNREFUSED):
		class = runtime.ErrUnavailable
	}
	if class == nil || errors.Is(err, class) {
		return err
	}
	return &classified{err, class}
}

// A statusError is an error that came over gRPC.
type statusError interface {
	error
	GRPCStatus() *status.Status
}

// isNotFound reports whether the runtime does not know what it was asked for.
func isNotFound(err error) bool {
	return errors.Is(err, runtime.ErrNotFound) || hasCode(err, codes.NotFound)
}

func hasCode(err error, code codes.Code) bool {
	over, ok := errors.AsType[statusError](err)
	return ok && over.GRPCStatus().Code() == code
}

// words returns what the runtime said of a failure, without gRPC's prefix
// (rt-78).
func errorMessage(err error) string {
	if other, ok := errors.AsType[*renamedError](err); ok {
		return other.said
	}
	if over, ok := errors.AsType[statusError](err); ok {
		return over.GRPCStatus().Message()
	}
	return err.Error()
}

// A startError is why a container could not be started, with the waiting reason
// that kubectl shows.
type startError struct {
	reason  string
	message string
	until   time.Time // when it may be tried again; zero: not known
	err     error
}

func (e *startError) Error() string { return e.message }
func (e *startError) Unwrap() error { return e.err }
