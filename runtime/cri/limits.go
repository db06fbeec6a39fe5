package cri

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/runtime"
)

// Maximum sizes of texts of the runtime, in bytes.
const (
	// maxErrorBytes limits errors of calls and messages of actions, which become the
	// waiting messages of containers. It equals the limit of termination messages.
	maxErrorBytes = 4 << 10

	// maxEventBytes limits event messages: the API server rejects longer ones in
	// events.k8s.io.
	maxEventBytes = 1 << 10
)

// bounded returns text if it has at most limit bytes, else its beginning and its end,
// which usually contain the operation and the cause. limit must be above 100.
func bounded(text string, limit int) string {
	if len(text) <= limit {
		return strings.ToValidUTF8(text, "?")
	}
	left := fmt.Sprintf(" … (%d bytes in all) … ", len(text))
	head := (limit - len(left)) / 2
	tail := limit - len(left) - head
	return strings.ToValidUTF8(text[:head], "") + left + strings.ToValidUTF8(text[len(text)-tail:], "")
}

// limitError returns err with a bounded text and the same class and gRPC code.
func limitError(err error) error {
	text := err.Error()
	if len(text) <= maxErrorBytes {
		return err
	}
	if over, ok := errors.AsType[statusError](err); ok {
		if full := over.GRPCStatus(); len(full.Message()) > maxErrorBytes {
			return status.Error(full.Code(), bounded(full.Message(), maxErrorBytes))
		}
	}
	return &limitedError{text: bounded(text, maxErrorBytes), err: err}
}

// A limitedError is an error with a bounded text.
type limitedError struct {
	text string
	err  error
}

func (e *limitedError) Error() string { return e.text }
func (e *limitedError) Unwrap() error { return e.err }

// limitMessages returns a Config.Record that limits event messages to maxEventBytes.
func limitMessages(record func(runtime.Event)) func(runtime.Event) {
	return func(e runtime.Event) {
		e.Message = bounded(e.Message, maxEventBytes)
		record(e)
	}
}
