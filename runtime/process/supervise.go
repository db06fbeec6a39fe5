package process

import (
	"fmt"
	"os"
	"strings"
)

// envSupervise tells a process of the agent's own program that it is to be a
// supervisor: "<container id>@<state directory>".
const envSupervise = "KUBEPARTS_PROCESS_SUPERVISOR"

// How to use this package, for the errors of those who did not read doc.go.
const callSupervise = "add `if code, ok := process.Supervise(); ok { os.Exit(code) }` as the first statement of main (or TestMain)"

// Supervise turns the calling process into the supervisor of one container,
// if that is what it was started for, and returns when the container has
// ended, with the code to exit with. In any other process it returns false at
// once.
//
// A program that uses this package must call it as the first statement of
// main, and a test binary that does, in TestMain:
//
//	if code, ok := process.Supervise(); ok {
//		os.Exit(code)
//	}
//
// Whatever runs before main (package initialization) runs in each supervisor.
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
		// Its stderr is a file beside the container's record.
		fmt.Fprintf(os.Stderr, "process: supervise %s: %v\n", id, err)
		return 1, true
	}
	return 0, true
}

// A word is what a supervisor says to the agent that started it, as a line of
// JSON on a pipe: first Hello, then PID or Error, then nothing any more.
type word struct {
	Hello bool   `json:"hello,omitempty"`
	PID   int    `json:"pid,omitempty"`
	Error string `json:"error,omitempty"`
}
