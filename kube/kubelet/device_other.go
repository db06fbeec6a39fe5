//go:build !unix

package kubelet

import "path/filepath"

// deviceOf names the volume that a path is on.
func deviceOf(path string) (string, error) { return filepath.VolumeName(path), nil }
