package procmem

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxSmaps is the maximum number of bytes of smaps that are read.
const maxSmaps = 8 << 20

// unmapProgram unmaps the read-only pages of the program.
func unmapProgram() (unmapped int64, err error) {
	program, err := os.Readlink("/proc/self/exe") // as in smaps, also if the file was replaced
	if err != nil {
		return 0, fmt.Errorf("procmem: %w", err)
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, fmt.Errorf("procmem: %w", err)
	}
	defer f.Close()
	found, err := releasable(io.LimitReader(f, maxSmaps), program)
	if err != nil {
		return 0, fmt.Errorf("procmem: read smaps: %w", err)
	}
	for _, m := range found {
		// No other mapping can have taken this one's place: those of the program are never removed.
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(m.start), uintptr(m.end-m.start), unix.MADV_DONTNEED)
		switch errno {
		case 0:
			unmapped += m.resident
		case unix.EINVAL: // locked into memory
		default:
			return unmapped, fmt.Errorf("procmem: unmap pages: %w", errno)
		}
	}
	return unmapped, nil
}
