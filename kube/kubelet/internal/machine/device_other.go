//go:build !unix

package machine

import "path/filepath"

// DeviceOf names the volume that a path is on.
func DeviceOf(path string) (string, error) { return filepath.VolumeName(path), nil }
