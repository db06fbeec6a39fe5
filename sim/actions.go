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

// reboot kills the agent, then crashes all pods, and drivers lose their state.
func (r *run) reboot(s Step) {
	r.mu.Lock()
	a := r.agent
	if a != nil {
		r.pending = &pendingKill{a, s}
	}
	uids := slices.Sorted(maps.Keys(r.truth.pods))
	r.mu.Unlock()
	if a != nil {
		a.die()
	}
	for _, uid := range uids {
		r.machine.Crash(uid)
	}
	r.loseClaims()
}

// markFailed sets the phase of an API pod to Failed, as another client does while no
// agent runs. While one runs, it does nothing: the source of a running agent ignores
// statuses that the agent did not write.
func (r *run) markFailed(uid types.UID) {
	r.mu.Lock()
	running := r.agent != nil
	r.mu.Unlock()
	if _, static := r.store.get(uid); static || running {
		return // only the agent writes the status of a static pod
	}
	pod := r.store.update(uid, func(pod *v1.Pod) bool {
		if status.Terminal(pod.Status.Phase) {
			return false
		}
		pod.Status.Phase, pod.Status.Reason = v1.PodFailed, "NodeLost"
		return true
	})
	if pod != nil {
		r.note(Entry{Kind: MarkedFailed, Pod: pod.Name, UID: uid, Object: pod})
	}
}

// outage reports whether s makes the runtime unavailable for so long that the agent
// must report it.
func (s Step) outage() bool {
	return s.Do == Fault && s.Calls == "runtime" && s.Percent == 100 && (s.Kind == Error || s.Kind == Hung) && s.For > outageDetection
}

// outageDetection is the time after which an agent must report an outage of the runtime;
// see the invariant runtime-outage-reported.
const outageDetection = 5 * time.Minute

// checkHealth adds the result of the agent's health check to the trace.
func (r *run) checkHealth() {
	r.mu.Lock()
	node, agent := r.node, r.agent
	r.mu.Unlock()
	if node == nil {
		return
	}
	e := Entry{Kind: HealthChecked, Agent: agent.agent}
	if err := node.Healthy(); err != nil {
		e.Err = err.Error()
	}
	r.note(e)
}

// conflictLabel counts the changes that another client made to a pod.
const conflictLabel = "sim.kubeparts.io/changes"

// call makes a call of the sink, with the faults that only the API has: Conflict and
// Missing.
func (s sink) call(ctx context.Context, what Call, do func() error) error {
	return s.agent.call(ctx, what, func(kind FaultKind, _ time.Duration) error {
		switch kind {
		case Conflict:
			s.run.store.update(what.UID, func(pod *v1.Pod) bool {
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
