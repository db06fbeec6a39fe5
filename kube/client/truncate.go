package client

import "strings"

// truncate returns at most limit bytes of s, at a character boundary, with "..." if it is
// truncated.
func truncate(s string, limit int) string {
	const mark = "..."
	if len(s) <= limit {
		return s
	}
	if limit <= len(mark) {
		return ""
	}
	return strings.ToValidUTF8(s[:limit-len(mark)], "") + mark
}
