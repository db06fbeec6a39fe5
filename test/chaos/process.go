package main

// Variables by which processes of containers are found, whoever started them.
const (
	chaosVar     = "CHAOS" // the run's directory
	uidVar       = "CHAOS_UID"
	containerVar = "CHAOS_CONTAINER"
)

// A process is one of a container.
type process struct {
	pid       int
	start     string // with the pid it names the process for good
	uid       string // of the pod
	container string
	instance  string // the PID namespace, of which each instance has its own
}

func (p process) alive() bool { return started(p.pid) == p.start }

// A groupDir is a cgroup in one hierarchy.
type groupDir string
