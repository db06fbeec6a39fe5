package sim

import (
	"fmt"
	"slices"

	"github.com/kubeparts/kubeparts/status"
)

// claimInvariants are the invariants of resource claims.
func claimInvariants() []Invariant {
	return []Invariant{{
		Name: "claims-prepared-first", Rules: "dra-1, dra-11",
		Description: "no container starts before all claims of its pod are prepared",
		newCheck:    claimsPreparedFirst,
	}, {
		Name: "unprepared-after-exit", Rules: "dra-2, sl-40", requiresCurrentLists: true,
		Description: "no claim is unprepared while a container of a pod with the claim runs",
		newCheck:    unpreparedAfterExit,
	}, {
		Name: "finally-unprepared", Rules: "dra-2, dra-13",
		Description: "finally, no claim is prepared unless a pod with the claim has not terminated",
		newCheck:    onSettled(finallyUnprepared),
	}}
}

func claimsPreparedFirst(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != Started {
			return ""
		}
		for _, name := range claimsOf(t.pod(e.UID).spec) {
			if !t.prepared[name] {
				return fmt.Sprintf("%s started, and claim %s is not prepared", e.Container.ID, name)
			}
		}
		return ""
	}
}

func unpreparedAfterExit(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != ClaimUnprepared {
			return ""
		}
		for _, p := range t.pods {
			if running := p.running(); len(running) > 0 && slices.Contains(claimsOf(p.spec), e.Claim) {
				return fmt.Sprintf("claim %s was unprepared while %s ran", e.Claim, running[0].ID)
			}
		}
		return ""
	}
}

func finallyUnprepared(t *truth, p *podTruth) string {
	for _, name := range claimsOf(p.spec) {
		if t.prepared[name] && !t.inUse(name) {
			return fmt.Sprintf("claim %s is prepared", name)
		}
	}
	return ""
}

// inUse reports whether a pod with the claim has not terminated.
func (t *truth) inUse(claim string) bool {
	for _, p := range t.pods {
		over := p.desired == nil || p.status != nil && status.Terminal(p.status.Phase)
		if !over && slices.Contains(claimsOf(p.spec), claim) {
			return true
		}
	}
	return false
}
