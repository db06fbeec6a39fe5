//go:build !windows

package atomic

import "io/fs"

// sameMode reports whether the modes are equal except for additional bits of adds.
func sameMode(got, want, adds fs.FileMode) bool {
	return got.Perm()&^adds == want.Perm()&^adds && want.Perm()&^got.Perm() == 0
}
