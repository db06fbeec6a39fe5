package atomic

import "io/fs"

// sameMode reports whether the write permissions are equal; Windows has no other permission bits.
func sameMode(got, want, _ fs.FileMode) bool { return got&0o200 == want&0o200 }
