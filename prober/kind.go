package prober

import v1 "k8s.io/api/core/v1"

// A Kind is the purpose of a probe.
type Kind int

// The kinds of probes, in the order in which those of a container are set up.
const (
	Startup   Kind = iota // whether the container has started; the other probes wait for it
	Readiness             // whether it can serve requests
	Liveness              // whether it need not be restarted
)

// kinds are all kinds, in order.
var kinds = [...]Kind{Startup, Readiness, Liveness}

// String returns the kind as in the kubelet's events and metrics, such as "Liveness".
func (k Kind) String() string {
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
func (k Kind) Probe(c *v1.Container) *v1.Probe {
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
