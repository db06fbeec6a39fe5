// Package dirlock locks a state directory or a CRI runtime for one agent.
package dirlock

import "errors"

// ErrHeld is the error if another process holds the lock.
var ErrHeld = errors.New("another agent uses it")
