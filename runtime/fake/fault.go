package fake

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/pause"
)

// A Call is one call of a method of a runtime.
type Call struct {
	// Method is the name of the method: of package runtime, of the CRI, or of a backend.
	Method string

	// Pod is the UID of the pod and Container the name of the container. Image is the
	// image of PullImage, ImageStatus and RemoveImage. They are empty for lists and if
	// they are not known.
	Pod              types.UID
	Container, Image string

	// ID is the ID in the request, unchanged, or empty: of a sandbox or container, or the
	// key of an instance or group of a backend.
	ID string

	// Number is the number of the call among those of this method, from 1.
	Number int
}

// A Fault is applied to one call. The zero value is no fault.
type Fault struct {
	// Delay is how long the call is delayed before it takes effect. If its context is done
	// before, the call returns the error of the context.
	Delay time.Duration

	// Lost makes the call take effect before Err or Hang is applied, as when the response
	// is lost. If neither is set, the call returns ErrLost.
	Lost bool

	// Hang blocks the call until its context is done, like an unresponsive daemon.
	Hang bool

	// Err is returned by the call, if not nil.
	Err error

	// Stale makes a list return its result as of this long ago.
	Stale time.Duration
}

// ErrLost is the error of a call whose response is lost.
var ErrLost = errors.New("response lost")

// An Error is the error of a Rule, with the name of a gRPC code, for example Unavailable.
type Error struct{ Code, Message string }

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// None reports whether f is no fault. Errors need not be comparable.
func (f Fault) None() bool {
	return f.Delay == 0 && !f.Lost && !f.Hang && f.Err == nil && f.Stale == 0
}

// Do makes a call with the fault. effect is the call without the fault, or for a list the
// list as of age ago.
func (f Fault) Do(ctx context.Context, effect func(age time.Duration) error) error {
	if err := pause.For(ctx, f.Delay); err != nil {
		return err
	}
	if f.Lost {
		_ = effect(f.Stale) // its error is lost, too
	}
	switch {
	case f.Hang:
		<-ctx.Done()
		return ctx.Err()
	case f.Err != nil:
		return f.Err
	case f.Lost:
		return ErrLost
	}
	return effect(f.Stale)
}
