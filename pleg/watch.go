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

// errSilent ends a stream that holds and says nothing while pods change.
var errSilent = errors.New("pleg: pods change, and the stream of hints says nothing")

// watchLoop turns hints into requests until ctx ends. A stream that breaks
// costs nothing but speed: from then on there are lists at the plain period,
// and they find what was hinted at meanwhile. It is opened again for ever,
// with growing pauses; also where there is none, because a newer runtime may
// take the place of this one, but that is no trouble, and said once.
func (g *Generator) watchLoop(ctx context.Context, w runtime.Watcher) {
	pause, said := watchPause, error(nil)
	for {
		start := time.Now()
		err := g.watch(ctx, w)
		if ctx.Err() != nil {
			return
		}
		if time.Since(start) >= watchPauseMax {
			pause = watchPause
		}
		// What is known to be so is said once: that there are no hints, and
		// that a stream is silent.
		kind := err
		for _, k := range []error{runtime.ErrUnsupported, errSilent} {
			if errors.Is(err, k) {
				kind = k
			}
		}
		switch {
		case errors.Is(said, kind) && kind != err:
		case kind == runtime.ErrUnsupported:
			g.log.Info("the runtime gives no hints: changes are found by listing", "err", err)
			pause = watchPauseMax
		default:
			g.log.Warn("lost the hints of the runtime, trying again", "pause", pause, "err", err)
		}
		said = kind
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, watchPauseMax)
	}
}

// watch is one stream of hints, until it breaks or ctx ends. The error says
// why; it is never nil.
func (g *Generator) watch(ctx context.Context, w runtime.Watcher) error {
	streamCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g.mu.Lock()
	g.confidence.opens(time.Now())
	g.reopen = func() { cancel(errSilent) }
	g.mu.Unlock()

	err := w.Watch(streamCtx, g.hint)
	switch {
	case errors.Is(context.Cause(streamCtx), errSilent):
		err = errSilent
	case err == nil:
		err = errors.New("pleg: the stream of hints ended")
	}

	g.mu.Lock()
	defer g.mu.Unlock()
	g.reopen = nil
	if ctx.Err() != nil {
		g.confidence.breaks(HintsNone)
		return err
	}
	g.hintsErr = err
	into := HintsBroken
	if errors.Is(err, runtime.ErrUnsupported) {
		into = HintsNone
	}
	long := g.confidence.period > g.cfg.Period
	g.confidence.breaks(into)
	if long {
		g.wantListLocked() // who knows what it did not say
	}
	return err
}
