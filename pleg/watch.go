package pleg

import (
	"context"
	"errors"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// The pause before a broken event stream is opened again doubles from watchPause to watchPauseMax. It is
// watchPause again after a stream that was open for watchPauseMax.
const (
	watchPause    = time.Second
	watchPauseMax = 30 * time.Second
)

// errSilentStream closes an open stream that has no events while pods change.
var errSilentStream = errors.New("pleg: no events although pods changed")

// watchLoop requests inspections for the events of the runtime until ctx is done. While the stream is
// broken, changes are found by lists each Config.Period. It is opened again with increasing pauses, also
// if the runtime does not support it, because a newer runtime may replace it.
func (g *Generator) watchLoop(ctx context.Context, w runtime.Watcher) {
	pause, logged := watchPause, error(nil)
	for {
		start := time.Now()
		err := g.watch(ctx, w)
		if ctx.Err() != nil {
			return
		}
		if time.Since(start) >= watchPauseMax {
			pause = watchPause
		}
		// Logged once: that events are not supported, and that the stream is silent.
		kind := err
		for _, k := range []error{runtime.ErrUnsupported, errSilentStream} {
			if errors.Is(err, k) {
				kind = k
			}
		}
		switch {
		case errors.Is(logged, kind) && kind != err:
		case kind == runtime.ErrUnsupported:
			g.log.Info("Runtime does not support events; listing pods periodically", "err", err)
			pause = watchPauseMax
		default:
			g.log.Warn("Event stream of the runtime ended; will reopen it", "retryIn", pause, "err", err)
		}
		logged = kind
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, watchPauseMax)
	}
}

// watch runs one event stream until it ends or ctx is done. The error is never nil.
func (g *Generator) watch(ctx context.Context, w runtime.Watcher) error {
	streamCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g.mu.Lock()
	g.confidence.streamBegan(time.Now())
	g.reopen = func() { cancel(errSilentStream) }
	g.mu.Unlock()

	err := w.Watch(streamCtx, g.handleRuntimeEvent)
	switch {
	case errors.Is(context.Cause(streamCtx), errSilentStream):
		err = errSilentStream
	case err == nil:
		err = errors.New("pleg: the event stream ended")
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	g.reopen = nil
	if ctx.Err() != nil {
		g.confidence.streamEnded(ConfidenceNone)
		return err
	}
	g.watchErr = err
	into := ConfidenceBroken
	if errors.Is(err, runtime.ErrUnsupported) {
		into = ConfidenceNone
	}
	long := g.confidence.period() > g.cfg.Period
	g.confidence.streamEnded(into)
	if long {
		g.requestListLocked() // changes may have been missed
	}
	return err
}
