package emptydir

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// kernelNoSwap reports whether the kernel's tmpfs supports the option noswap: 6.4 and
// later do.
func kernelNoSwap() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	return supportsNoSwap(unix.ByteSliceToString(u.Release[:]))
}

func supportsNoSwap(release string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n != 2 {
		return false
	}
	return major > 6 || major == 6 && minor >= 4
}
