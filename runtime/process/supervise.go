package process

import (
	"fmt"
	"os"
	"strings"
)

// envSupervise marks a supervisor process: "<container id>@<state directory>".
const envSupervise = "KUBEPARTS_PROCESS_SUPERVISOR"

// callSupervise is appended to errors about a program without Supervise.
const callSupervise = "add `if code, ok := process.Supervise(); ok { os.Exit(code) }` as the first statement of main (or TestMain)"

// Supervise makes the calling process the supervisor of one container, if it was
// started as one. It blocks until the container has exited, and returns the exit
// code for this process and true. In any other process it returns false
// immediately.
//
// A program that uses this package must call it as the first statement of main, and
// a test binary in TestMain:
//
//	if code, ok := process.Supervise(); ok {
//		os.Exit(code)
//	}
//
// Package initialization runs in each supervisor.
func Supervise() (code int, ok bool) {
	job, ok := os.LookupEnv(envSupervise)
	if !ok {
		return 0, false
	}
	id, dir, ok := strings.Cut(job, "@")
	if !ok || !validID(id) {
		fmt.Fprintf(os.Stderr, "process: %s=%q does not name a container\n", envSupervise, job)
		return 2, true
	}
	if err := supervise(stateDir(dir), id); err != nil {
		// Its stderr is a file in the container's directory.
		fmt.Fprintf(os.Stderr, "process: supervise %s: %v\n", id, err)
		return 1, true
	}
	return 0, true
}

// A supervisorMessage is a message of a supervisor to the agent that started it, one line of
// JSON on a pipe: first Hello, then PID or Error.
type supervisorMessage struct {
	Hello bool   `json:"hello,omitempty"`
	PID   int    `json:"pid,omitempty"`
	Error string `json:"error,omitempty"`
}
