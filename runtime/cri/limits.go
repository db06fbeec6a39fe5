package cri

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/runtime"
)

// How much of what a runtime says goes on to others, in bytes.
const (
	// maxWords is the limit of an error of a call, and of the message of an
	// action, which becomes a container's waiting message. It is that of
	// termination messages.
	maxErrorBytes = 4 << 10

	// maxNote is the limit of the message of an event. The API refuses events
	// of events.k8s.io with more, and nobody would see them.
	maxEventBytes = 1 << 10
)

// bounded returns text if it has no more than limit bytes, which are more than a
// hundred; else its beginning, which says what failed, and its end, which mostly
// says why.
func bounded(text string, limit int) string {
	if len(text) <= limit {
		return strings.ToValidUTF8(text, "?")
	}
	left := fmt.Sprintf(" … (%d bytes in all) … ", len(text))
	head := (limit - len(left)) / 2
	tail := limit - len(left) - head
	return strings.ToValidUTF8(text[:head], "") + left + strings.ToValidUTF8(text[len(text)-tail:], "")
}

// shorten returns the error of a call with what it says bounded. Classes and
// codes stay.
func limitError(err error) error {
	said := err.Error()
	if len(said) <= maxErrorBytes {
		return err
	}
	if over, ok := errors.AsType[statusError](err); ok {
		if full := over.GRPCStatus(); len(full.Message()) > maxErrorBytes {
			return status.Error(full.Code(), bounded(full.Message(), maxErrorBytes)) // and the rest is let go of
		}
	}
	return &limitedError{said: bounded(said, maxErrorBytes), err: err}
}

// A shortened error says less than the one it wraps.
type limitedError struct {
	said string
	err  error
}

func (e *limitedError) Error() string { return e.said }
func (e *limitedError) Unwrap() error { return e.err }

// brief is a Config.Record whose events have messages that the API takes.
func limitMessages(record func(runtime.Event)) func(runtime.Event) {
	return func(e runtime.Event) {
		e.Message = bounded(e.Message, maxEventBytes)
		record(e)
	}
}
