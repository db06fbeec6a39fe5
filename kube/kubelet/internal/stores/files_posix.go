//go:build linux || darwin

package stores

import "syscall"

// allowFiles lets the agent open so many files, or as many as it may.
func allowFiles(most uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= most {
		return err
	}
	higher := limit
	higher.Cur, higher.Max = most, max(limit.Max, most)
	err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &higher)
	if err != nil { // as far as it goes
		limit.Cur = limit.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	return err
}
