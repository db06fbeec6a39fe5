package prober

import v1 "k8s.io/api/core/v1"

// A ProbeKind is the purpose of a probe.
type ProbeKind int

// The kinds of probes, in the order in which those of a container are set up.
const (
	Startup   ProbeKind = iota // whether the container has started; the other probes wait for it
	Readiness                  // whether it can serve requests
	Liveness                   // whether it need not be restarted
)

// kinds are all kinds, in order.
var kinds = [...]ProbeKind{Startup, Readiness, Liveness}

// String returns the kind as in the kubelet's events and metrics, such as "Liveness".
func (k ProbeKind) String() string {
	switch k {
	case Startup:
		return "Startup"
	case Readiness:
		return "Readiness"
	case Liveness:
		return "Liveness"
	default:
		return "Unknown"
	}
}

// Probe returns the probe of this kind of a container, or nil.
func (k ProbeKind) Probe(c *v1.Container) *v1.Probe {
	switch k {
	case Startup:
		return c.StartupProbe
	case Readiness:
		return c.ReadinessProbe
	case Liveness:
		return c.LivenessProbe
	default:
		return nil
	}
}
