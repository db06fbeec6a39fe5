package images

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// pullReason returns the waiting reason and message of a failed pull, as the kubelet does.
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

// canceledError returns the error of a request whose context is done.
func canceledError(ctx context.Context) *Error {
	return &Error{Reason: ErrImagePull, Message: ctx.Err().Error(), Err: ctx.Err()}
}

// A statusError is a gRPC error.
type statusError interface {
	error
	GRPCStatus() *status.Status
}

// errorText returns the text of a failed pull. As with the kubelet, it begins with gRPC's prefix
// unless the code is Unknown, so that the reasons of pullReason are at its beginning.
func errorText(err error) string {
	if several, ok := err.(triedErrors); ok {
		return several.Error()
	}
	if over, ok := errors.AsType[statusError](err); ok && over.GRPCStatus().Code() == codes.Unknown {
		return over.GRPCStatus().Message()
	}
	return err.Error()
}

// mayHaveSucceeded reports whether the operation may have succeeded although the call failed.
func mayHaveSucceeded(err error) bool {
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
