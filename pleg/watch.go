package pleg

import (
	"context"
	"errors"
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
// pauses; also where there is none, because a newer runtime may take the place
// of this one, but that is no trouble, and said once.
func (g *Generator) watchLoop(ctx context.Context, w runtime.Watcher) {
	pause, none := watchPause, false
	for {
		start := time.Now()
		err := w.Watch(ctx, g.RequestRelist)
		if ctx.Err() != nil {
			return
		}
		if time.Since(start) >= watchPauseMax {
			pause = watchPause
		}
		switch unsupported := errors.Is(err, runtime.ErrUnsupported); {
		case !unsupported:
			g.log.Warn("lost the hints of the runtime, trying again", "pause", pause, "err", err)
			none = false
		case !none:
			g.log.Info("the runtime gives no hints: changes are found by listing", "err", err)
			pause, none = watchPauseMax, true
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, watchPauseMax)
	}
}
