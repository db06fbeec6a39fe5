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

// early is how much earlier than this process a runtime may detect that the deadline of a
// call has passed.
const early = 100 * time.Millisecond

// joinContextErr adds ctx's error to the error of a call that failed because of it, so
// that callers do not depend on gRPC codes.
func joinContextErr(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	cause := contextErr(ctx, err)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return errors.Join(cause, err)
}

// contextErr returns the error of ctx if the call that returned err failed because of it.
func contextErr(ctx context.Context, err error) error {
	why := ctx.Err()
	if deadline, ok := ctx.Deadline(); why == nil && ok && time.Until(deadline) < early && hasCode(err, codes.DeadlineExceeded) {
		why = context.DeadlineExceeded
	}
	return why
}

// A classified error has the text of error and also matches class with errors.Is.
type classified struct {
	error
	class error
}

func (c *classified) Unwrap() []error { return []error{c.error, c.class} }

// classify adds the class of a call's error: the error of the caller's ctx, or a sentinel
// of package runtime. own is the context with the call's deadline; if only own is done,
// the runtime did not respond.
func classify(ctx, own context.Context, err error) error {
	class := contextErr(ctx, err)
	switch {
	case class != nil:
	case own.Err() != nil:
		return &classified{fmt.Errorf("timed out: %w", err), runtime.ErrUnavailable}
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

// A statusError is a gRPC error.
type statusError interface {
	error
	GRPCStatus() *status.Status
}

// isNotFound reports whether the object does not exist in the runtime.
func isNotFound(err error) bool {
	return errors.Is(err, runtime.ErrNotFound) || hasCode(err, codes.NotFound)
}

func hasCode(err error, code codes.Code) bool {
	over, ok := errors.AsType[statusError](err)
	return ok && over.GRPCStatus().Code() == code
}

// errorMessage returns the message of the runtime, without gRPC's prefix.
func errorMessage(err error) string {
	if other, ok := errors.AsType[*renamedError](err); ok {
		return other.text
	}
	if over, ok := errors.AsType[statusError](err); ok {
		return over.GRPCStatus().Message()
	}
	return err.Error()
}

// A startError is the error of a container start, with the reason and message of the
// waiting state.
type startError struct {
	reason  string
	message string
	until   time.Time // the earliest time of the next attempt; zero if unknown
	err     error
}

func (e *startError) Error() string { return e.message }
func (e *startError) Unwrap() error { return e.err }
