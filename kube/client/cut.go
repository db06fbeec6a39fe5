package client

import "strings"

// cut returns the beginning of s, of at most limit bytes and whole characters;
// that something is missing shows.
func cut(s string, limit int) string {
	const mark = "..."
	if len(s) <= limit {
		return s
	}
	if limit <= len(mark) {
		return ""
	}
	return strings.ToValidUTF8(s[:limit-len(mark)], "") + mark
}
