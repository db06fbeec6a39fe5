package chaos

// Environment variables that identify the processes of containers.
const (
	chaosVar     = "CHAOS" // the run's directory
	uidVar       = "CHAOS_UID"
	containerVar = "CHAOS_CONTAINER"
)

// A process is a process of a container.
type process struct {
	pid       int
	start     string // start time, identifies the process together with pid
	uid       string // of the pod
	container string
	instance  string // the PID namespace, which is unique for each instance
}

func (p process) alive() bool { return started(p.pid) == p.start }

// A groupDir is a cgroup in one hierarchy.
type groupDir string
