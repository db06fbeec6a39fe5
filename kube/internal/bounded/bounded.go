// Package bounded limits values that a client, a pod or another peer chooses, before they reach a
// log or a span, and identifies clients for limits.
package bounded

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
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

// Client returns the key under which the limits of a client count: the host of a remote address
// without its port and, for IPv6, its /64, since one host has all addresses of such a network. An
// address of another form is returned unchanged.
func Client(remoteAddr string) string {
	host, _, err := net.SplitHostPort(remoteAddr)
	if err != nil {
		host = remoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip = ip.Unmap()
	if ip.Is4() {
		return ip.String()
	}
	network, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return host
	}
	return network.String()
}

// maxLogged is the maximum size of a value in a log line, in bytes.
const maxLogged = 2 << 10

// Handler returns a handler that limits the message and the values of each record to 2 KiB, as
// [Text] does. Values of other types are formatted if they are larger.
func Handler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ slog.Handler }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	limited := slog.NewRecord(r.Time, r.Level, Text(r.Message, maxLogged), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		limited.AddAttrs(attr(a))
		return true
	})
	return h.Handler.Handle(ctx, limited)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	limited := make([]slog.Attr, 0, len(attrs))
	for _, a := range attrs {
		limited = append(limited, attr(a))
	}
	return handler{h.Handler.WithAttrs(limited)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }

func attr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, Text(v.String(), maxLogged))
	case slog.KindGroup:
		group := make([]slog.Attr, 0, len(v.Group()))
		for _, member := range v.Group() {
			group = append(group, attr(member))
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(group...)}
	case slog.KindAny:
		if text := fmt.Sprint(v.Any()); len(text) > maxLogged {
			return slog.String(a.Key, Text(text, maxLogged))
		}
	}
	return a
}
