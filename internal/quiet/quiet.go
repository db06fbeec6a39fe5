// Package quiet keeps the CRI client from writing to stderr.
package quiet

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Context returns ctx with what the CRI client logs about each failed call sent
// to log, at the debug level. The error is returned to the caller anyway; without
// this, klog would write it to stderr too.
func Context(ctx context.Context, log *slog.Logger) context.Context {
	return klog.NewContext(ctx, logr.FromSlogHandler(demoted{log.Handler()}))
}

// demoted is a handler that takes every record for a debug one.
type demoted struct{ slog.Handler }

func (d demoted) Enabled(ctx context.Context, _ slog.Level) bool {
	return d.Handler.Enabled(ctx, slog.LevelDebug)
}

func (d demoted) Handle(ctx context.Context, rec slog.Record) error {
	if !d.Enabled(ctx, rec.Level) {
		return nil // logr hands over errors without asking
	}
	rec.Level = slog.LevelDebug
	return d.Handler.Handle(ctx, rec)
}

func (d demoted) WithAttrs(a []slog.Attr) slog.Handler { return demoted{d.Handler.WithAttrs(a)} }
func (d demoted) WithGroup(name string) slog.Handler   { return demoted{d.Handler.WithGroup(name)} }
