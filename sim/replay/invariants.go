package replay

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/sim"
)

// graceInvariant is the only invariant that package sim does not have: it is about single calls of the CRI.
const graceInvariant = "grace-period-given"

// evaluated are the invariants of package sim whose entries a replay produces. The others
// require the behavior of simulated images, or subsystems that are not replayed.
var evaluated = []string{
	"one-live-instance", "one-ready-sandbox", "restart-policy", "init-order", "back-off", "static-pod-exclusive", "no-sync-hot-loop",
	"no-sync-after-kill", "no-start-after-kill", "grace-period-never-extended", "killed-for-a-reason", "sidecars-stop-last",
	"terminal-phase-final", "reported-restart-count", "terminal-means-stopped", "terminal-not-ready", "deleted-after-cleanup",
	"exit-codes-correct", "reported-instance-never-older",
	"finally-cleaned-up", "finally-deleted", "finally-running", "finally-reported",
	"events-in-order", "exit-events", "exit-events-by-relist", "finally-last-state",
	"terminal-never-restarts", "no-status-hot-loop", "finally-all-restarted", "prompt-kill", "restart-count-increases",
	"unhealthy-restarted", "healthy-not-killed", "no-probe-after-kill", "startup-probe-first",
}

// Invariants returns the invariants that a replay can evaluate, in the order of [sim.Invariants].
func Invariants() (out []sim.Invariant) {
	for _, inv := range sim.Invariants() {
		if slices.Contains(evaluated, inv.Name) {
			out = append(out, inv)
		}
	}
	return append(out, sim.Invariant{
		Name: graceInvariant, Rules: "rt-108, rt-112",
		Description: "a regular container of a deleted pod gets the grace period of the deletion between TERM and KILL, unless it has a preStop hook",
	})
}

// InvariantNames returns the names of all [Invariants], for Options.Invariants.
func InvariantNames() (out []string) {
	for _, inv := range Invariants() {
		out = append(out, inv.Name)
	}
	return out
}

// checkInvariants returns an error for an unknown name.
func checkInvariants(names []string) error {
	all := InvariantNames()
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("no invariant %q; replay.Invariants has all", name)
		}
	}
	return nil
}

// checkGrace evaluates graceInvariant at a call of StopContainer with a timeout in seconds. The caller holds mu.
func (m *model) checkGrace(t *item, timeout int64) {
	p := m.pods[t.pod]
	if !m.grace || p == nil || p.last == nil || p.grace == nil {
		return
	}
	c := podspec.Container(p.last, t.name)
	if c == nil || slices.ContainsFunc(p.last.Spec.InitContainers, func(i v1.Container) bool { return i.Name == t.name }) {
		return
	}
	grace := max(*p.grace, 1) // the minimum of the pod workers
	const second = 1          // the call of KillPod has the deadline of all containers
	hook := c.Lifecycle != nil && c.Lifecycle.PreStop != nil
	if timeout > grace || timeout < grace-second && t.stops == 0 && !hook {
		m.add(sim.Violation{
			At: m.w.now(), Invariant: graceInvariant, UID: t.pod,
			Message: fmt.Sprintf("%s gets %d s, the deletion specifies %d s", t.status.ID, timeout, grace),
		})
	}
}
