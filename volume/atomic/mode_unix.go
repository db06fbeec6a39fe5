//go:build !windows

package atomic

import "io/fs"

// sameMode reports whether a file's mode is what was wanted, or has more bits of
// those that may be added.
func sameMode(got, want, adds fs.FileMode) bool {
	return got.Perm()&^adds == want.Perm()&^adds && want.Perm()&^got.Perm() == 0
}
