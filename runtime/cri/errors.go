package cri

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// early is how much sooner than our own clock a runtime may find that the
// deadline which we sent it has passed.
const early = 100 * time.Millisecond

// calledOff adds why ctx ended to the failure of a call that was made with it,
// so that callers need not know gRPC's codes.
func calledOff(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	why := ctx.Err()
	if deadline, ok := ctx.Deadline(); why == nil && ok && time.Until(deadline) < early && hasCode(err, codes.DeadlineExceeded) {
		why = context.DeadlineExceeded
	}
	if why == nil || errors.Is(err, why) {
		return err
	}
	return errors.Join(why, err)
}

// A statusError is an error that came over gRPC.
type statusError interface {
	error
	GRPCStatus() *status.Status
}

// isNotFound reports whether the runtime does not know what it was asked for.
func isNotFound(err error) bool { return hasCode(err, codes.NotFound) }

func hasCode(err error, code codes.Code) bool {
	over, ok := errors.AsType[statusError](err)
	return ok && over.GRPCStatus().Code() == code
}

// words returns what the runtime said of a failure, without gRPC's prefix
// (rt-78).
func words(err error) string {
	if other, ok := errors.AsType[*renamed](err); ok {
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
