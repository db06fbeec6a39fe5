//go:build unix

package machine

import (
	"fmt"
	"os"
	"syscall"
)

// DeviceOf names the device that a path is on.
func DeviceOf(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(info.Sys().(*syscall.Stat_t).Dev), nil
}
