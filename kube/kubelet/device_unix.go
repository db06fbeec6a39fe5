//go:build unix

package kubelet

import (
	"fmt"
	"os"
	"syscall"
)

// deviceOf names the device that a path is on.
func deviceOf(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(info.Sys().(*syscall.Stat_t).Dev), nil
}
