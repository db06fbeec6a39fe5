package fakecri

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// It has the codes of containerd 2.4. It returns Unknown for errors without a code, for
// example invalid states and missing fields.

// refused returns an error with code Unknown.
func refused(format string, args ...any) error {
	return status.Error(codes.Unknown, "fakecri: "+fmt.Sprintf(format, args...))
}

// unknownID returns the error for an ID that [chain.find] did not find.
func unknownID(kind, id string, err error) error {
	if errors.Is(err, errNoSuchID) {
		return status.Errorf(codes.NotFound, "fakecri: %s %q not found", kind, id)
	}
	return refused("%s %q: %v", kind, id, err)
}

// reservedFor returns the error for a name in use. Its last words are containerd's,
// which users search for.
func reservedFor(kind, name, id string) error {
	return status.Errorf(codes.FailedPrecondition, "fakecri: %s name %q is reserved for %q", kind, name, id)
}

// notRunning returns the error for calls that require a ready sandbox.
func notRunning(act string, s *sandbox) error {
	return refused("%s: sandbox %q is not running", act, s.id)
}

// idempotent removes the error for an unknown ID.
func idempotent(kind, id string, err error) error {
	if errors.Is(err, errNoSuchID) {
		return nil
	}
	return unknownID(kind, id, err)
}

func unimplemented(method, why string) error {
	return status.Errorf(codes.Unimplemented, "fakecri: %s is not implemented: %s", method, why)
}

// infoOf returns the JSON in the info of a verbose response.
func infoOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // v can always be encoded
		return err.Error()
	}
	return string(text)
}

// words returns the message of an error without its code.
func words(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}
