package sim

import (
	"fmt"
	"iter"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/status"
)

// remember returns what remembers a T of each pod, for as long as somebody knows
// what was said of it: through one time of being wanted, and, where the source
// does not give statuses back (static pods), one agent.
func remember[T any]() func(t *truth, e *Entry) *T {
	type key struct {
		uid         types.UID
		life, agent int
	}
	kept := map[key]*T{}
	return func(t *truth, e *Entry) *T {
		p := t.pod(e.UID)
		k := key{uid: e.UID, life: p.lives}
		if p.static {
			k.agent = e.Agent
		}
		if kept[k] == nil {
			kept[k] = new(T)
		}
		return kept[k]
	}
}

// statusLaws are about what the sink is told.
func statusLaws() []Law {
	return []Law{{
		Name: "terminal-stays", Rules: "inv-7, st-50",
		Says: "the phase that is told of a pod never leaves Succeeded or Failed",
		begin: func(t *truth) func(*Entry) string {
			phase := remember[v1.PodPhase]()
			return func(e *Entry) string {
				if e.Kind != Said {
					return ""
				}
				last := phase(t, e)
				before := *last
				*last = e.Status.Phase
				if status.Terminal(before) && e.Status.Phase != before {
					return fmt.Sprintf("%s after %s", e.Status.Phase, before)
				}
				return ""
			}
		},
	}, {
		Name: "restarts-only-grow", Rules: "inv-10",
		Says: "the restartCount that is told of a container never decreases",
		begin: func(t *truth) func(*Entry) string {
			counts := remember[map[string]int32]()
			return func(e *Entry) string {
				if e.Kind != Said {
					return ""
				}
				last := counts(t, e)
				before := *last
				*last = map[string]int32{}
				for c := range containerStatuses(e.Status) {
					(*last)[c.Name] = c.RestartCount
				}
				for name, n := range before {
					if now, ok := (*last)[name]; ok && now < n {
						return fmt.Sprintf("%s went from %d to %d", name, n, now)
					}
				}
				return ""
			}
		},
	}}
}

// containerStatuses ranges over init containers and regular ones.
func containerStatuses(s *v1.PodStatus) iter.Seq[*v1.ContainerStatus] {
	return func(yield func(*v1.ContainerStatus) bool) {
		for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}
