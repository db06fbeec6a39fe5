//go:build !linux && !darwin

package imagegc

import (
	"errors"
	"fmt"
)

// StatFS returns how full the file system is that path is on: for Config.Space. It is
// not supported on this operating system.
func StatFS(path string) (Space, error) {
	return Space{}, fmt.Errorf("imagegc: file system of %s: %w", path, errors.ErrUnsupported)
}
