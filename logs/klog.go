package logs

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Context returns ctx with the logger [Klog] for functions that log to the klog logger of their
// context.
func Context(ctx context.Context, log *slog.Logger) context.Context {
	return klog.NewContext(ctx, Klog(log))
}

// Klog returns a logger that writes to log at debug level. Libraries of Kubernetes log the
// errors that they return, too; without it, they write to stderr, in another format.
func Klog(log *slog.Logger) klog.Logger { return logr.FromSlogHandler(demoted{log.Handler()}) }

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
