// Package quiet lowers the level of log messages: those of client-go, which returns its errors
// anyway, and repeated ones while a server has not started.
package quiet

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Context returns ctx with [Logger].
func Context(ctx context.Context, log *slog.Logger) context.Context {
	return klog.NewContext(ctx, Logger(log))
}

// Logger returns a logger that writes to log at debug level. Without it, client-go writes to
// stderr, in another format.
func Logger(log *slog.Logger) klog.Logger { return logr.FromSlogHandler(demoted{log.Handler()}) }

// demoted is a handler that sets the level of every record to debug.
type demoted struct{ slog.Handler }

func (d demoted) Enabled(ctx context.Context, _ slog.Level) bool {
	return d.Handler.Enabled(ctx, slog.LevelDebug)
}

func (d demoted) Handle(ctx context.Context, rec slog.Record) error {
	if !d.Enabled(ctx, rec.Level) {
		return nil // logr does not call Enabled for errors
	}
	rec.Level = slog.LevelDebug
	return d.Handler.Handle(ctx, rec)
}

func (d demoted) WithAttrs(a []slog.Attr) slog.Handler { return demoted{d.Handler.WithAttrs(a)} }
func (d demoted) WithGroup(name string) slog.Handler   { return demoted{d.Handler.WithGroup(name)} }
