//go:build !linux && !darwin

package stats

import (
	"errors"
	"fmt"
)

// Statfs returns errors.ErrUnsupported. Set Config.Disk on this platform.
func Statfs(path string) (Disk, error) {
	return Disk{}, fmt.Errorf("statfs %s: %w", path, errors.ErrUnsupported)
}
