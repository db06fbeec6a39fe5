//go:build !linux && !darwin

package imagegc

import (
	"errors"
	"fmt"
)

// statFS is not supported on this operating system.
func statFS(path string) (Space, error) {
	return Space{}, fmt.Errorf("imagegc: stat file system of %s: %w", path, errors.ErrUnsupported)
}
