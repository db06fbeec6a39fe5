//go:build linux || darwin

package process

import (
	"os"
	"syscall"
)

// startSupervisor starts a supervisor in a session of its own, so that signals of
// the agent's terminal do not reach it, with only the descriptors it needs.
func startSupervisor(command, env []string, log, alive, words *os.File) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	return os.StartProcess(command[0], command[1:], &os.ProcAttr{
		Dir:   "/", // does not keep the agent's working directory busy
		Env:   env,
		Files: []*os.File{null, null, log, fdAlive: alive, fdWords: words},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
}
