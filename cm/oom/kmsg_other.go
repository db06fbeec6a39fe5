//go:build !linux

package oom

import (
	"errors"
	"fmt"
	"io"
	"runtime"
)

// OpenKmsg returns an error: only Linux has /dev/kmsg.
func OpenKmsg() (io.ReadCloser, error) {
	return nil, fmt.Errorf("the kernel's log on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
