package sim

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// declareProbes sets the probes of c whose results b defines.
func declareProbes(b fake.Behavior, c *v1.Container) {
	probe := func(period, failures int32) *v1.Probe {
		return &v1.Probe{
			ProbeHandler:  v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"probe"}}},
			PeriodSeconds: period, FailureThreshold: failures,
		}
	}
	if b.ReadyAfter > 0 {
		c.ReadinessProbe = probe(10, 2)
	}
	if b.StartedAfter > 0 {
		c.StartupProbe = probe(2, 30)
	}
	if b.UnhealthyAfter > 0 || b.Liveness {
		c.LivenessProbe = probe(7, 2)
	}
}

// passes reports whether a probe of a container with this behavior succeeds at a
// time after its start.
func passes(b *fake.Behavior, kind prober.Kind, age time.Duration) bool {
	switch kind {
	case prober.Startup:
		return age >= b.StartedAfter
	case prober.Readiness:
		return age >= b.ReadyAfter
	default:
		return b.UnhealthyAfter == 0 || age < b.UnhealthyAfter
	}
}

// A ProbeRun is one attempt of a probe, with the result that the prober received.
type ProbeRun struct {
	Container   string
	ContainerID string
	Kind        prober.Kind
	Success     bool
}

// String returns the attempt as "kind ID result".
func (p *ProbeRun) String() string {
	result := "failure"
	if p.Success {
		result = "success"
	}
	return fmt.Sprintf("%s %s %s", p.Kind, p.ContainerID, result)
}

// A probeHandler runs the probes of one agent: each attempt is a call to the outside.
type probeHandler struct{ agent *Agent }

// Probe implements prober.Handler.
func (h probeHandler) Probe(ctx context.Context, t prober.Target) (prober.Outcome, error) {
	within, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	outcome := prober.Outcome{Result: runtime.ProbeFailure, Output: "simulated"}
	done := false
	what := Call{Method: probeCall, UID: t.Pod.UID, ID: t.ContainerID + "/" + t.Kind.String()}
	err := h.agent.call(within, what, func(kind FaultKind, _ time.Duration) error {
		done = true
		if h.agent.run.probe(h.agent, t, kind != Sick) {
			outcome.Result = runtime.ProbeSuccess
		}
		return nil
	})
	switch {
	case err == nil || ctx.Err() != nil:
		return outcome, err
	case within.Err() == nil:
		return prober.Outcome{}, err // the probe could not be run
	case !done:
		h.agent.pace(probeCall+" "+what.ID, t.Pod.UID) // several may have timed out at this instant
		h.agent.run.probe(h.agent, t, false)
	}
	return outcome, nil
}

// probe returns the result of an attempt of a probe, and adds it to the trace. If well
// is false, it fails. It returns false for a killed agent.
func (r *run) probe(a *Agent, t prober.Target, well bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.truth.pod(t.Pod.UID).instances[t.ContainerID]
	if well = well && c != nil && c.State == runtime.ContainerRunning; well {
		does := r.images[c.Image]
		well = passes(&does, t.Kind, time.Since(c.StartedAt))
	}
	return r.noteLocked(Entry{Kind: Probed, Agent: a.agent, Pod: t.Pod.Name, UID: t.Pod.UID, Object: t.Pod, Probe: &ProbeRun{
		Container: t.Container.Name, ContainerID: t.ContainerID, Kind: t.Kind, Success: well,
	}}) && well
}

// A probeKey identifies one probe of one instance of a container.
type probeKey struct {
	id   string
	kind prober.Kind
}

// A probeTruth is the result of a probe after its attempts so far.
type probeTruth struct {
	agent     int // of the last attempt
	failures  int // consecutive failures of that agent's attempts
	hasResult bool
	success   bool      // the result; only if hasResult
	since     time.Time // time of the last change of the result
}

// addProbeRun updates the result of a probe with an attempt.
func (p *podTruth) addProbeRun(t *truth, e *Entry) {
	k := probeKey{e.Probe.ContainerID, e.Probe.Kind}
	s := p.probes[k]
	if s == nil {
		s = new(probeTruth)
		p.probes[k] = s
	}
	if s.agent != e.Agent {
		s.agent, s.failures = e.Agent, 0
	}
	success := e.Probe.Success
	s.failures++
	if success {
		s.failures = 0
	} else if c, _ := p.container(e.Probe.Container); c == nil || k.kind.Probe(c) == nil || s.failures < int(k.kind.Probe(c).FailureThreshold) {
		return
	}
	if !s.hasResult || s.success != success {
		s.hasResult, s.success, s.since = true, success, t.now
	}
	if !success && k.kind != prober.Readiness {
		p.unhealthy[k.id] = e.Agent
	}
}

// probeSucceeds reports whether the result of the probe of an instance is success, or
// its container has no such probe.
func (p *podTruth) probeSucceeds(spec *v1.Container, id string, kind prober.Kind) bool {
	s := p.probes[probeKey{id, kind}]
	return kind.Probe(spec) == nil || s != nil && s.hasResult && s.success
}
