package logs

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// Text returns text in valid UTF-8 if it has at most limit bytes, else its beginning and its end,
// which usually contain the operation and the cause, with the number of bytes. limit must be
// above 100.
func Text(text string, limit int) string {
	if len(text) <= limit {
		return strings.ToValidUTF8(text, "?")
	}
	left := fmt.Sprintf(" … (%d bytes in all) … ", len(text))
	head := (limit - len(left)) / 2
	tail := limit - len(left) - head
	return strings.ToValidUTF8(text[:head], "") + left + strings.ToValidUTF8(text[len(text)-tail:], "")
}

// maxLogged is the maximum size of a value in a log line, in bytes.
const maxLogged = 2 << 10

// Bounded returns a handler that limits the message and the values of each record to 2 KiB, as
// [Text] does. Values of other types are formatted if they are larger.
func Bounded(next slog.Handler) slog.Handler { return boundedHandler{next} }

type boundedHandler struct{ slog.Handler }

func (h boundedHandler) Handle(ctx context.Context, r slog.Record) error {
	limited := slog.NewRecord(r.Time, r.Level, Text(r.Message, maxLogged), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		limited.AddAttrs(boundedAttr(a))
		return true
	})
	return h.Handler.Handle(ctx, limited)
}

func (h boundedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	limited := make([]slog.Attr, 0, len(attrs))
	for _, a := range attrs {
		limited = append(limited, boundedAttr(a))
	}
	return boundedHandler{h.Handler.WithAttrs(limited)}
}

func (h boundedHandler) WithGroup(name string) slog.Handler {
	return boundedHandler{h.Handler.WithGroup(name)}
}

func boundedAttr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, Text(v.String(), maxLogged))
	case slog.KindGroup:
		group := make([]slog.Attr, 0, len(v.Group()))
		for _, member := range v.Group() {
			group = append(group, boundedAttr(member))
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(group...)}
	case slog.KindAny:
		if text := fmt.Sprint(v.Any()); len(text) > maxLogged {
			return slog.String(a.Key, Text(text, maxLogged))
		}
	}
	return a
}
