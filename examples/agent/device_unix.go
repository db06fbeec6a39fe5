//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// device names the device that a path is on.
func device(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(info.Sys().(*syscall.Stat_t).Dev), nil
}
