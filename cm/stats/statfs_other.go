//go:build !linux && !darwin

package stats

import (
	"errors"
	"fmt"
)

// Statfs returns an error here: give Config.Disk.
func Statfs(path string) (Disk, error) {
	return Disk{}, fmt.Errorf("statfs %s: %w", path, errors.ErrUnsupported)
}
