package replay

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// expectProbes adds the probes that are compared.
func (w *world) expectProbes() {
	for i, f := range w.x.probes {
		p, begin := f.Probe, max(0, f.At-f.Probe.Took)
		w.outputs.expect(probeLane(p.Pod, p.Container, p.Kind), &output{
			begin: begin, end: f.At, index: w.x.indexOf[p], key: "probe", body: probeBody(p.ContainerID), container: p.ContainerID, frame: i,
			optional: w.ends(p.ContainerID, begin),
		})
	}
}

func probeBody(containerID string) any { return map[string]any{"containerID": containerID} }

func probeLane(pod types.UID, container, kind string) laneKey {
	return laneKey{pod, kind + " probe of " + container}
}

// A handler is a prober.Handler that returns the recorded outcomes.
type handler struct{ w *world }

func (h handler) Probe(ctx context.Context, t prober.Target) (prober.Outcome, error) {
	if h.w.model != nil {
		return h.w.model.probe(ctx, t)
	}
	key := probeLane(t.Pod.UID, t.Container.Name, t.Kind.String())
	pace := string(key.pod) + key.kind
	if err := h.w.pace(ctx, pace); err != nil {
		return prober.Outcome{}, ctx.Err()
	}
	h.w.mu.Lock()
	began := h.w.now()
	var o *output
	if next := h.w.nextProbe(key, t.ContainerID); next != nil && next.container == t.ContainerID || !h.w.ends(t.ContainerID, began) {
		o = h.w.match(key, "probe", probeBody(t.ContainerID), true)
	}
	h.w.mu.Unlock()
	if o == nil {
		return prober.Outcome{Result: runtime.ProbeSuccess}, nil
	}
	if h.w.sleepUntil(ctx, pace, aligned(began, o.begin, o.end, h.w.tolerance)) != nil {
		return prober.Outcome{}, ctx.Err()
	}
	p := h.w.x.probes[o.frame].Probe
	h.w.mu.Lock()
	h.w.draws.probe, h.w.draws.at = o.index, h.w.now()
	h.w.mu.Unlock()
	out := prober.Outcome{Warning: p.Warning, Output: p.Output, Detail: p.Detail}
	switch p.Result {
	case runtime.ProbeSuccess.String():
		out.Result = runtime.ProbeSuccess
	case runtime.ProbeFailure.String():
		out.Result = runtime.ProbeFailure
	}
	return out, newError(p.Error)
}

// ends reports whether a container was stopped or exited soon after a time. A probe at that time may be made by
// one of the two agents only: the times of probes differ as much as those at which the container was seen to run.
func (w *world) ends(containerID string, at time.Duration) bool {
	_, id, _ := strings.Cut(containerID, "://")
	t := w.x.things[id]
	if t == nil {
		return false
	}
	soon := func(end time.Duration) bool { return end >= at && end-at <= w.tolerance }
	return t.stop != nil && soon(t.stop.begin) || t.reported > 0 && soon(t.reported)
}

// nextProbe returns the next recorded probe in a lane; nil if there is none. Those of earlier containers that
// need not be replayed are skipped. The caller holds mu.
func (w *world) nextProbe(key laneKey, containerID string) *output {
	for _, o := range w.outputs.lane(key).outputs {
		switch {
		case o.matched:
		case o.container != containerID && o.optional:
			o.matched = true
		default:
			return o
		}
	}
	return nil
}
