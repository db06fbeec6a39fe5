// Package dirlock locks a resource that only one agent may use, such as a state directory
// or a CRI runtime.
package dirlock

import "errors"

// ErrHeld is the error if another agent holds the lock.
var ErrHeld = errors.New("another agent uses it")
