//go:build !linux

package volume

import (
	"errors"
	"fmt"
)

// Share is for Linux.
func MakeShared(string) error { return fmt.Errorf("volume: share: %w", errors.ErrUnsupported) }
