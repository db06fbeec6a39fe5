//go:build !(linux || darwin)

package dirlock

import (
	"errors"
	"fmt"
	"runtime"
)

// A Lock is there on Linux and darwin only.
type Lock struct{}

// Take says that there are none here, with an error that is errors.ErrUnsupported.
func Take(string) (*Lock, error) {
	return nil, fmt.Errorf("not supported on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Release has nothing to let go.
func (*Lock) Release() error { return nil }
