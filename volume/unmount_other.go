//go:build !linux

package volume

import "errors"

func kernelMountPoint(string) (bool, error) { return false, errors.ErrUnsupported }
