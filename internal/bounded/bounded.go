// Package bounded limits values that a client, a pod, a driver or another peer chooses, before
// they reach a log, an event or a span. kube/internal/bounded has more for servers.
package bounded

import (
	"fmt"
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
