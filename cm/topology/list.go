package topology

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// maxCPU limits CPU IDs and the length of a list, since a corrupt file could request any
// amount of memory. The kernel supports 8192 CPUs.
const maxCPU = 1 << 16

// ParseCPUs parses a CPU list in the format of the kernel and of checkpoints, "0-3,8".
// Unlike cpuset.Parse it limits the memory that untrusted input can allocate. Surrounding
// white space is ignored; an empty list is an empty set.
func ParseCPUs(list string) (cpuset.CPUSet, error) {
	list = strings.TrimSpace(list)
	if list == "" {
		return cpuset.New(), nil
	}
	var ids []int
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := cpuNumber(from)
		last := first
		if err == nil && isRange {
			last, err = cpuNumber(to)
		}
		if err != nil || last < first {
			return cpuset.New(), fmt.Errorf("topology: CPU list: %.40q is not a number or a range", part)
		}
		if len(ids)+last-first >= maxCPU {
			return cpuset.New(), fmt.Errorf("topology: CPU list has more than %d CPUs", maxCPU)
		}
		for id := first; id <= last; id++ {
			ids = append(ids, id)
		}
	}
	return cpuset.New(ids...), nil
}

func cpuNumber(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err == nil && n >= maxCPU {
		err = strconv.ErrRange
	}
	return int(n), err
}
