package replay

import (
	"context"
	"slices"
	"time"
)

// isStart are the methods that CallConfig.Starts limits. The limit of the recorded agent followed the latency
// of the runtime, call by call; the replayed agent has none, and its calls wait for the recorded times instead.
var isStart = map[string]bool{"RunPodSandbox": true, "CreateContainer": true, "StartContainer": true}

// takeTurn waits until the recorded begin of a start if the recorded agent was starting something all the
// time until then: its call may have waited for its turn. A call that others did not delay is not delayed.
func (w *world) takeTurn(ctx context.Context, method, pace string, request []byte) error {
	if w.model != nil || !isStart[method] {
		return nil
	}
	w.mu.Lock()
	now, at := w.now(), time.Duration(0)
	key, action := w.action(method, request)
	outputs := w.outputs.lane(key).outputs
	if i := slices.IndexFunc(outputs, func(o *output) bool { return !o.matched && o.key == action }); i >= 0 {
		at = outputs[i].begin
	}
	w.mu.Unlock()
	if at <= now || !w.x.starting(now, at) {
		return nil
	}
	return w.sleepUntil(ctx, pace, at)
}

// starting reports whether a start was in progress at any time between two times.
func (x *index) starting(from, to time.Duration) bool {
	for _, c := range x.starts {
		if c.begin > from+lag {
			break
		}
		from = max(from, c.end)
	}
	return from+lag >= to
}
