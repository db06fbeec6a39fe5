package process

import (
	"os"
	"time"
)

// tick is the unit of CPU times in /proc: USER_HZ, 100 on every architecture
// that Go runs on.
const tick = time.Second / 100

// measure returns the usage of the descendants of each supervisor, by its PID, in
// one pass over /proc.
func measure(supervisors []int) map[int]usage {
	if len(supervisors) == 0 {
		return nil
	}
	all := map[int]procStat{}
	for p := range processes() {
		all[p.pid] = p
	}
	return usageOf(supervisors, all, uint64(os.Getpagesize()))
}

// usageOf sums over descendants, not over a session, which processes can leave. The
// CPU time of terminated processes is included in that of the process that reaped
// them; of the supervisor only that part counts.
func usageOf(supervisors []int, all map[int]procStat, page uint64) map[int]usage {
	used := map[int]usage{}
	for _, pid := range supervisors {
		if s, ok := all[pid]; ok {
			used[pid] = usage{cpu: time.Duration(s.childUser+s.childSystem) * tick}
		}
	}
	for _, p := range all {
		if _, ok := used[p.pid]; ok {
			continue
		}
		owner := p.ppid
		// The pass is not atomic: the limit prevents an endless loop if PIDs form a
		// cycle.
		for range len(all) {
			if _, ok := used[owner]; ok || owner == 0 {
				break
			}
			owner = all[owner].ppid
		}
		u, ok := used[owner]
		if !ok {
			continue
		}
		u.cpu += time.Duration(p.user+p.system+p.childUser+p.childSystem) * tick
		u.rss += p.rssPages * page
		u.processes++
		used[owner] = u
	}
	return used
}
