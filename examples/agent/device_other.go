//go:build !unix

package main

import "path/filepath"

// device names the volume that a path is on.
func device(path string) (string, error) { return filepath.VolumeName(path), nil }
