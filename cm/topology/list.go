package topology

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// maxCPU bounds the IDs in a list: the kernel has room for 8192 CPUs. A list in a
// broken file can ask for more than there is memory.
const maxCPU = 1 << 16

// ParseCPUs reads a list as the kernel and state files have them, "0-3,8". It is
// cpuset.Parse for lists that nobody vouches for. Space around it is ignored;
// nothing is an empty set.
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
			return cpuset.New(), fmt.Errorf("topology: %.40q in a list of CPUs is not a number or a range", part)
		}
		if len(ids)+last-first >= maxCPU {
			return cpuset.New(), fmt.Errorf("topology: a list of CPUs has more than %d", maxCPU)
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
