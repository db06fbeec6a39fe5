package replay

import (
	"context"
	"encoding/json"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/sim/record"
)

func (w *world) expectStatuses() {
	for i, f := range w.x.statuses {
		action := "DeletePod"
		if f.Status.Status != nil {
			action = "UpdatePodStatus"
		}
		w.outputs.expect(laneKey{f.Status.UID, statuses}, &output{
			begin: max(0, f.At-f.Status.Took), end: f.At, index: i, key: action, body: statusTree(f.Status.Status), frame: i,
		})
	}
}

func statusTree(s *v1.PodStatus) any {
	if s == nil {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return tree(text)
}

// A sink is a status.Sink that returns the recorded results.
type sink struct {
	w    *world
	next interface {
		UpdatePodStatus(ctx context.Context, pod *v1.Pod, status v1.PodStatus) error
		DeletePod(ctx context.Context, pod *v1.Pod) error
	} // called for successful writes
}

func (s sink) UpdatePodStatus(ctx context.Context, pod *v1.Pod, status v1.PodStatus) error {
	if m := s.w.model; m != nil {
		if err := m.write(ctx, pod, &status); err != nil {
			return err
		}
	} else if err := s.w.write(ctx, pod, "UpdatePodStatus", &status); err != nil {
		return err
	}
	return s.next.UpdatePodStatus(ctx, pod, status)
}

func (s sink) DeletePod(ctx context.Context, pod *v1.Pod) error {
	if m := s.w.model; m != nil {
		if err := m.write(ctx, pod, nil); err != nil {
			return err
		}
	} else if err := s.w.write(ctx, pod, "DeletePod", nil); err != nil {
		return err
	}
	return s.next.DeletePod(ctx, pod)
}

// write makes an action on the status of a pod. status is nil for DeletePod.
func (w *world) write(ctx context.Context, pod *v1.Pod, action string, status *v1.PodStatus) error {
	key := "status " + string(pod.UID)
	if err := w.pace(ctx, key); err != nil {
		return ctx.Err()
	}
	w.mu.Lock()
	w.name(pod.UID, pod.Namespace, pod.Name)
	began := w.now()
	o := w.match(laneKey{pod.UID, statuses}, action, statusTree(status), true)
	w.written[pod.UID] = status
	w.mu.Unlock()
	if o == nil {
		return nil
	}
	if w.sleepUntil(ctx, key, aligned(began, o.begin, o.end, w.tolerance)) != nil {
		return ctx.Err()
	}
	return newError(w.x.statuses[o.frame].Status.Error)
}

// expectOperations adds the operations on volumes and cgroups that are compared.
func (w *world) expectOperations() {
	for i, f := range w.x.operations {
		o := f.Operation
		if o.Component == "volume" && (o.Name != mounted && o.Name != unmounted || !w.x.specified[o.Pod]) { // or of an orphan
			continue
		}
		key, action := operation(f.Operation)
		w.outputs.expect(key, &output{begin: max(0, f.At-f.Operation.Took), end: f.At, index: i, key: action, frame: i})
	}
}

// operation returns the lane of an operation, one for each volume, and its name.
func operation(o *record.Operation) (laneKey, string) {
	kind := o.Component
	if o.Volume != "" {
		kind += " " + o.Volume
	}
	return laneKey{o.Pod, kind}, o.Name
}

// operate makes an operation on a volume or a cgroup, and returns the recorded result.
func (w *world) operate(ctx context.Context, op record.Operation) error {
	key, action := operation(&op)
	pace := string(key.pod) + key.kind + action
	if w.pace(ctx, pace) != nil {
		return ctx.Err()
	}
	w.mu.Lock()
	began := w.now()
	o := w.match(key, action, nil, false)
	w.mu.Unlock()
	if o == nil {
		return nil
	}
	if w.sleepUntil(ctx, pace, aligned(began, o.begin, o.end, w.tolerance)) != nil {
		return ctx.Err()
	}
	return newError(w.x.operations[o.frame].Operation.Error)
}

// nextOperation returns the begin of the next recorded operation of a kind; false if there is none.
func (w *world) nextOperation(op record.Operation) (time.Duration, bool) {
	key, action := operation(&op)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.outputs.lane(key).outputs {
		if o.key == action && !o.matched {
			return o.begin, true
		}
	}
	return 0, false
}

// operated reports whether a recorded operation of a kind is due.
func (w *world) operated(op record.Operation) bool {
	at, ok := w.nextOperation(op)
	return ok && at <= w.now()+w.tolerance
}

// cgroups are the recorded cgroups.
type cgroups struct{ w *world }

// Ensure returns nil if no call was recorded: successes are recorded once.
func (c cgroups) Ensure(ctx context.Context, pod *v1.Pod) error {
	op := record.Operation{Component: "cgroup", Name: "ensure", Pod: pod.UID}
	if !c.w.operated(op) {
		return nil
	}
	return c.w.operate(ctx, op)
}

func (c cgroups) Remove(ctx context.Context, uid types.UID) error {
	return c.w.operate(ctx, record.Operation{Component: "cgroup", Name: "remove", Pod: uid})
}

// Retain returns nil if no call was recorded: successes are not.
func (c cgroups) Retain(ctx context.Context, _ func(types.UID) bool) error {
	op := record.Operation{Component: "cgroup", Name: "collect"}
	if !c.w.operated(op) {
		return nil
	}
	return c.w.operate(ctx, op)
}
