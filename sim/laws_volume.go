package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubeparts/kubeparts/status"
)

// volumeLaws are about when volumes are mounted and unmounted.
func volumeLaws() []Invariant {
	return []Invariant{{
		Name: "volumes-first", Rules: "sl-36, vol-26",
		Says:  "no container starts, and no probe runs, before all volumes of its pod are mounted",
		begin: volumesFirst,
	}, {
		Name: "unmounted-last", Rules: "sl-48, vol-29", lists: true,
		Says:  "no volume of a pod is unmounted while a container of the pod runs",
		begin: unmountedLast,
	}, {
		Name: "rest-unmounted", Rules: "vol-12, vol-29",
		Says:  "in the end, no volume is mounted of a pod that is terminated or not wanted",
		begin: atRest(restUnmounted),
	}}
}

func volumesFirst(t *truth) func(*Entry) string {
	return func(e *Entry) string {
		p := t.pod(e.UID)
		if e.Kind != Started && e.Kind != Probed || p.spec == nil {
			return ""
		}
		if e.Kind == Probed && p.killing != nil && len(p.running()) == 0 {
			return "" // it has ended, and its volumes with it
		}
		for i := range p.spec.Spec.Volumes {
			if name := p.spec.Spec.Volumes[i].Name; !p.mounted[name] {
				return fmt.Sprintf("volume %s was not mounted", name)
			}
		}
		return ""
	}
}

func unmountedLast(t *truth) func(*Entry) string {
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

func restUnmounted(_ *truth, p *podTruth) string {
	over := p.wanted == nil || p.said != nil && status.Terminal(p.said.Phase)
	if over && len(p.mounted) > 0 {
		return fmt.Sprintf("volumes %v are mounted", slices.Sorted(maps.Keys(p.mounted)))
	}
	return ""
}
