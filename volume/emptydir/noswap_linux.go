package emptydir

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/kubeparts/kubeparts/internal/usernamespace"
)

// kernelNoSwap reports whether the kernel's tmpfs supports the option noswap: 6.4 and
// later do, in the initial user namespace only.
func kernelNoSwap() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil || usernamespace.Inside(os.DirFS("/")) {
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
