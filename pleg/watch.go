package pleg

import (
	"context"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// The pause before a broken stream of hints is opened again doubles from the
// first to the last of these, and starts over after a stream that held for the
// last (lq-4).
const (
	watchPause    = time.Second
	watchPauseMax = 30 * time.Second
)

// watchLoop turns hints into requests until ctx ends. A stream that breaks
// costs nothing but speed: lists go on at their period all the time, and find
// what was hinted at meanwhile. It is opened again for ever, with growing
// pauses.
func (g *Generator) watchLoop(ctx context.Context, w runtime.Watcher) {
	pause := watchPause
	for {
		start := time.Now()
		err := w.Watch(ctx, g.RequestRelist)
		if ctx.Err() != nil {
			return
		}
		if time.Since(start) >= watchPauseMax {
			pause = watchPause
		}
		g.log.Warn("lost the hints of the runtime, trying again", "pause", pause, "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, watchPauseMax)
	}
}
