package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubeparts/kubeparts/status"
)

// volumeInvariants are the invariants of mounts and unmounts.
func volumeInvariants() []Invariant {
	return []Invariant{{
		Name: "volumes-mounted-first", Rules: "sl-36, vol-26",
		Description: "no container starts and no probe runs before all volumes of the pod are mounted",
		newCheck:    volumesMountedFirst,
	}, {
		Name: "unmounted-after-exit", Rules: "sl-48, vol-29", requiresCurrentLists: true,
		Description: "no volume of a pod is unmounted while a container of the pod runs",
		newCheck:    unmountedAfterExit,
	}, {
		Name: "finally-unmounted", Rules: "vol-12, vol-29",
		Description: "finally, no volume of a terminated or removed pod is mounted",
		newCheck:    onSettled(finallyUnmounted),
	}}
}

func volumesMountedFirst(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		p := t.pod(e.UID)
		if e.Kind != Started && e.Kind != Probed || p.spec == nil {
			return ""
		}
		if e.Kind == Probed && p.lastKill != nil && len(p.running()) == 0 {
			return "" // the pod has terminated and its volumes are unmounted
		}
		for i := range p.spec.Spec.Volumes {
			if name := p.spec.Spec.Volumes[i].Name; !p.mounted[name] {
				return fmt.Sprintf("volume %s was not mounted", name)
			}
		}
		return ""
	}
}

func unmountedAfterExit(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		if e.Kind != Unmounted {
			return ""
		}
		if running := t.pod(e.UID).running(); len(running) > 0 {
			return fmt.Sprintf("volume %s was unmounted while %s ran", e.Volume, running[0].ID)
		}
		return ""
	}
}

func finallyUnmounted(_ *truth, p *podTruth) string {
	over := p.desired == nil || p.status != nil && status.Terminal(p.status.Phase)
	if over && len(p.mounted) > 0 {
		return fmt.Sprintf("volumes %v are mounted", slices.Sorted(maps.Keys(p.mounted)))
	}
	return ""
}
