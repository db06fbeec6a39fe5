package atomic

import "io/fs"

// sameMode reports whether a file can be written to as was wanted; there are no other
// permission bits here.
func sameMode(got, want, _ fs.FileMode) bool { return got&0o200 == want&0o200 }
