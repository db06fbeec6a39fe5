// Package dirlock keeps a second agent from what one uses: a state directory, a CRI
// runtime.
package dirlock

import "errors"

// ErrHeld is that somebody else has the lock.
var ErrHeld = errors.New("another agent uses it")
