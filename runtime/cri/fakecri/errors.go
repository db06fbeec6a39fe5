package fakecri

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Codes are those of containerd 2.4. What that puts no code on comes out of it as
// Unknown, and so it does here: states that forbid a call, fields that are
// missing.

// refused is such an error.
func refused(format string, args ...any) error {
	return status.Error(codes.Unknown, "fakecri: "+fmt.Sprintf(format, args...))
}

// unknownID is the error for an ID that [chain.find] did not find.
func unknownID(kind, id string, err error) error {
	if errors.Is(err, errNoSuchID) {
		return status.Errorf(codes.NotFound, "fakecri: %s %q not found", kind, id)
	}
	return refused("%s %q: %v", kind, id, err)
}

// reservedFor is the error for a name that is taken. The words at its end are
// what people look for.
func reservedFor(kind, name, id string) error {
	return status.Errorf(codes.FailedPrecondition, "fakecri: %s name %q is reserved for %q", kind, name, id)
}

// notRunning is the error for what needs a sandbox that is ready.
func notRunning(act string, s *sandbox) error {
	return refused("%s: sandbox %q is not running", act, s.id)
}

// idempotent is for calls that are content with an ID that nobody has.
func idempotent(kind, id string, err error) error {
	if errors.Is(err, errNoSuchID) {
		return nil
	}
	return unknownID(kind, id, err)
}

func unimplemented(method, why string) error {
	return status.Errorf(codes.Unimplemented, "fakecri: %s is not implemented: %s", method, why)
}

// infoOf is what a verbose answer has in its info, which is JSON.
func infoOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // of what v never is
		return err.Error()
	}
	return string(text)
}

// words are those of an error, without its code.
func words(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}
