//go:build !linux

package volume

import (
	"errors"
	"fmt"
)

// MakeShared returns errors.ErrUnsupported: mount propagation is a feature of Linux.
func MakeShared(string) error { return fmt.Errorf("volume: share: %w", errors.ErrUnsupported) }
