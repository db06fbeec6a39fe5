package untrusted

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// mountID returns the ID of the mount that an open file is on. Two mounts of one
// file system have different IDs.
func mountID(fd int) (uint64, error) {
	path := fmt.Sprintf("/proc/self/fdinfo/%d", fd)
	info, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(info) {
		if value, ok := bytes.CutPrefix(line, []byte("mnt_id:")); ok {
			return strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no mnt_id", path)
}
