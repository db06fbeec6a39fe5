package prober

import v1 "k8s.io/api/core/v1"

// A Kind is what a probe is for.
type Kind int

// The kinds of probes, in the order in which those of a container are set up
// (prober-3).
const (
	Startup   Kind = iota // the container has started; until then the others wait
	Readiness             // it can serve
	Liveness              // it is to be left running
)

// kinds are all of them, in order.
var kinds = [...]Kind{Startup, Readiness, Liveness}

// String returns the kind as the kubelet's events and metrics spell it:
// "Liveness".
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

// Of returns the probe of this kind that c has, or nil.
func (k Kind) Of(c *v1.Container) *v1.Probe {
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
