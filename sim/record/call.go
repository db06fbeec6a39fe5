package record

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// pendingAfter is the duration after which a call that has not returned is recorded.
const pendingAfter = 10 * time.Second

// record makes a call of the CRI and records it. answer returns the message of the RPC for what do
// returned.
func record[T any](r *Recorder, method string, request proto.Message, do func() (T, error), answer func(T) proto.Message) (T, error) {
	sent := encodeWire(request) // before the call, which may keep the message
	begun := time.Now()
	pending := time.AfterFunc(pendingAfter, func() {
		r.addCall(Call{Method: method, Took: time.Since(begun), Pending: true}, sent, wire{}, nil)
	})
	out, err := do()
	pending.Stop()
	var received wire
	if err == nil {
		received = encodeWire(answer(out))
	}
	r.addCall(Call{Method: method, Took: time.Since(begun)}, sent, received, newError(err))
	return out, err
}

// recordDo is record for calls without a result.
func recordDo(r *Recorder, method string, request proto.Message, do func() error) error {
	_, err := record(r, method, request, func() (struct{}, error) { return struct{}{}, do() }, func(struct{}) proto.Message { return nil })
	return err
}

func (r *Recorder) addCall(c Call, request, answer wire, err *Error) {
	r.add(len(request.data)+len(answer.data), func(e *encoder) Frame { return e.call(c, request, answer, err) })
}

// encodeWire encodes a message, so that later changes of it have no effect. The encoding is the
// same for equal messages.
func encodeWire(m proto.Message) wire {
	if m == nil || !m.ProtoReflect().IsValid() {
		return wire{}
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil { // invalid UTF-8
		return wire{}
	}
	return wire{m.ProtoReflect().Type().Zero().Interface(), data}
}

// newError returns nil for nil.
func newError(err error) *Error {
	if err == nil {
		return nil
	}
	e := &Error{Message: err.Error()}
	switch s, ok := status.FromError(err); {
	case ok:
		e.Code = s.Code().String()
	case errors.Is(err, context.DeadlineExceeded):
		e.Code = codes.DeadlineExceeded.String()
	case errors.Is(err, context.Canceled):
		e.Code = codes.Canceled.String()
	}
	var exit interface{ ExitStatus() int }
	if errors.As(err, &exit) {
		e.Exit = new(exit.ExitStatus())
	}
	return e
}
