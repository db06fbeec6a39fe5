package cri

import (
	"errors"

	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/logs"
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

// limitError returns err with a bounded text and the same class and gRPC code.
func limitError(err error) error {
	text := err.Error()
	if len(text) <= maxErrorBytes {
		return err
	}
	if over, ok := errors.AsType[statusError](err); ok {
		if full := over.GRPCStatus(); len(full.Message()) > maxErrorBytes {
			return status.Error(full.Code(), logs.Text(full.Message(), maxErrorBytes))
		}
	}
	return &limitedError{text: logs.Text(text, maxErrorBytes), err: err}
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
		e.Message = logs.Text(e.Message, maxEventBytes)
		record(e)
	}
}
