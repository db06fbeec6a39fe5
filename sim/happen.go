package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/status"
)

// reboot ends all that runs, the agent first.
func (r *run) reboot(s Step) {
	r.mu.Lock()
	a := r.agent
	if a != nil {
		r.pending = &doom{a, s}
	}
	uids := slices.Sorted(maps.Keys(r.truth.pods))
	r.mu.Unlock()
	if a != nil {
		a.die()
	}
	for _, uid := range uids {
		r.machine.Crash(uid)
	}
}

// fail tells the API that a pod has failed, while no agent is heard of. (What one
// that runs makes of such news is its source's business, which hides it.)
func (r *run) fail(uid types.UID) {
	r.mu.Lock()
	lives := r.agent != nil
	r.mu.Unlock()
	if _, static := r.store.get(uid); static || lives {
		return // nobody else writes the status of a manifest
	}
	pod := r.store.change(uid, func(pod *v1.Pod) bool {
		if status.Terminal(pod.Status.Phase) {
			return false
		}
		pod.Status.Phase, pod.Status.Reason = v1.PodFailed, "NodeLost"
		return true
	})
	if pod != nil {
		r.note(Entry{Kind: Failed, Pod: pod.Name, UID: uid, Object: pod})
	}
}

// An outage is a fault by which a runtime does not answer at all for longer than
// an agent can overlook.
func (s Step) outage() bool {
	return s.Do == Fault && s.Calls == "runtime" && s.Percent == 100 && (s.Kind == Error || s.Kind == Hung) && s.For > outageKnown
}

// outageKnown is how long a runtime has to be away until an agent says so,
// whatever it waits for: see the law health-is-true.
const outageKnown = 5 * time.Minute

// ask asks the agent how it is.
func (r *run) ask() {
	r.mu.Lock()
	node, agent := r.node, r.agent
	r.mu.Unlock()
	if node == nil {
		return
	}
	e := Entry{Kind: Asked, Agent: agent.agent}
	if err := node.Healthy(); err != nil {
		e.Err = err.Error()
	}
	r.note(e)
}

// conflictLabel counts how often somebody else has changed a pod.
const conflictLabel = "sim.kubeparts.io/changes"

// call makes a call of the sink, with the faults that only the API has.
func (s sink) call(ctx context.Context, what Call, do func() error) error {
	return s.agent.call(ctx, what, func(kind FaultKind, _ time.Duration) error {
		switch kind {
		case Conflict:
			s.run.store.change(what.UID, func(pod *v1.Pod) bool {
				n, _ := strconv.Atoi(pod.Labels[conflictLabel]) // no label is zero
				pod.Labels = map[string]string{conflictLabel: strconv.Itoa(n + 1)}
				return true
			})
			return s.agent.failed(what, errors.New("the object has been modified"))
		case Missing:
			if pod, _ := s.run.store.get(what.UID); pod == nil {
				return s.agent.failed(what, errors.New("not found"))
			}
		}
		return do()
	})
}
