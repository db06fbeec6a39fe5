//go:build !linux

package procmem

// unmapProgram does nothing: the system has no interface for it.
func unmapProgram() (int64, error) { return 0, nil }
