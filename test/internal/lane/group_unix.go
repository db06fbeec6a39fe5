//go:build unix

package lane

import "syscall"

// ownGroup makes a process the first one of a process group, which endGroup ends.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func endGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGTERM) }
