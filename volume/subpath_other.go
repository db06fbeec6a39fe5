//go:build !linux

package volume

import (
	"errors"
	"fmt"
)

func bindSubPath(Mounter, string, string, string) (string, error) {
	return "", fmt.Errorf("volume: sub-paths: %w", errors.ErrUnsupported)
}
