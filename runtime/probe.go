package runtime

// A ProbeResult is what the last runs of a probe came to, thresholds applied.
type ProbeResult int

// The results of a probe. The zero value is that there is none yet.
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

// ProbeResults are the results that decide on restarts, by container ID in the
// form of ContainerStatus.ID. A container whose ID is missing has no result yet.
// Readiness is not among them: it restarts nothing.
type ProbeResults struct {
	Liveness map[string]ProbeResult
	Startup  map[string]ProbeResult
}
