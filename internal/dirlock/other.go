//go:build !(linux || darwin)

package dirlock

import (
	"errors"
	"fmt"
	"runtime"
)

// A Lock is supported on Linux and darwin only.
type Lock struct{}

// Take returns an error that wraps errors.ErrUnsupported.
func Take(string) (*Lock, error) {
	return nil, fmt.Errorf("not supported on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Release does nothing.
func (*Lock) Release() error { return nil }
