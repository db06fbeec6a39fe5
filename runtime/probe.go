package runtime

// A ProbeResult is the result of a probe, after its thresholds.
type ProbeResult int

// The results of a probe. Unknown, the zero value, means that there is none yet.
const (
	ProbeUnknown ProbeResult = iota
	ProbeSuccess
	ProbeFailure
)

// String returns the result in lower case: "failure".
func (r ProbeResult) String() string {
	switch r {
	case ProbeSuccess:
		return "success"
	case ProbeFailure:
		return "failure"
	default:
		return "unknown"
	}
}

// ProbeStatus is the latest results of the startup and readiness probes of one container, as
// its status reports them.
type ProbeStatus struct {
	Startup, Readiness ProbeResult
}

// ProbeResults are the results of the probes that restart containers, by container ID as in
// ContainerStatus.ID. A container that is missing has no result yet. Readiness restarts nothing and
// is not included.
type ProbeResults struct {
	Liveness map[string]ProbeResult
	Startup  map[string]ProbeResult
}
