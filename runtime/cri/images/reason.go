package images

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// pullReason returns the waiting reason and message of a failed pull (img-9).
func pullReason(image, text string) (reason, message string) {
	for _, r := range []struct{ reason, friendly string }{
		{RegistryUnavailable, "image pull failed for " + image + " because the registry is unavailable"},
		{SignatureValidationFailed, "image pull failed for " + image + " because the signature validation failed"},
	} {
		if rest, ok := strings.CutPrefix(text, r.reason); ok {
			message := r.friendly
			if rest = strings.TrimPrefix(rest, ": "); rest != "" {
				message += ": " + rest
			}
			return r.reason, message
		}
	}
	return ErrImagePull, text
}

// calledOff is the answer to somebody whose context ended.
func canceledError(ctx context.Context) *Error {
	return &Error{Reason: ErrImagePull, Message: ctx.Err().Error(), Err: ctx.Err()}
}

// A statusError is an error that came over gRPC.
type statusError interface {
	error
	GRPCStatus() *status.Status
}

// words returns what the runtime said of a failure, without gRPC's prefix
// (rt-78).
func errorText(err error) string {
	if over, ok := err.(statusError); ok {
		return over.GRPCStatus().Message()
	}
	if several, ok := err.(triedErrors); ok {
		return several.Error()
	}
	if over, ok := errors.AsType[statusError](err); ok {
		return over.GRPCStatus().Message()
	}
	return err.Error()
}

// lostAnswer reports whether the runtime may have done what it was asked for
// although the call failed.
func lostAnswer(err error) bool {
	over, ok := errors.AsType[statusError](err)
	if !ok {
		return false
	}
	switch over.GRPCStatus().Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable:
		return true
	}
	return false
}
