package logs

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// reminder is the period after which a repeated message is passed at its level again.
const reminder = 5 * time.Minute

// Repeats returns a handler that sets the level of repeated messages to debug while waiting
// reports true: components that retry until another one has started repeat the same error.
// The first record of each message, whatever its attributes, and one every five minutes keep
// their level. waiting must be safe for concurrent use.
func Repeats(h slog.Handler, waiting func() bool) slog.Handler {
	return repeats{h, waiting, &passed{at: map[string]time.Time{}}}
}

type repeats struct {
	slog.Handler
	waiting func() bool
	passed  *passed
}

// passed has the times at which messages were passed at their level, by message.
type passed struct {
	mu sync.Mutex
	at map[string]time.Time
}

// again reports whether a message was passed less than reminder ago; otherwise it is now.
func (p *passed) again(message string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.at[message]; ok && now.Sub(last) < reminder {
		return true
	}
	p.at[message] = now
	return false
}

func (r repeats) Handle(ctx context.Context, rec slog.Record) error {
	if rec.Level >= slog.LevelWarn && r.waiting() && r.passed.again(rec.Message, time.Now()) {
		return demoted{r.Handler}.Handle(ctx, rec)
	}
	return r.Handler.Handle(ctx, rec)
}

func (r repeats) WithAttrs(a []slog.Attr) slog.Handler {
	r.Handler = r.Handler.WithAttrs(a)
	return r
}

func (r repeats) WithGroup(name string) slog.Handler {
	r.Handler = r.Handler.WithGroup(name)
	return r
}
