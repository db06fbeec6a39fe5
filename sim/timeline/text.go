package timeline

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// sanitize returns untrusted text for one line of a terminal or an image: characters
// that do not print (line breaks, escape sequences, marks that change the writing
// direction) are replaced by U+FFFD, and the text is cut to n runes.
func sanitize(s string, n int) string {
	var b strings.Builder
	runes := 0
	for _, r := range s {
		if runes++; runes == n {
			b.WriteRune('…')
			break
		}
		if !unicode.IsPrint(r) {
			r = unicode.ReplacementChar
		}
		b.WriteRune(r)
	}
	return b.String()
}

// elapsed formats a time since the start: 0s, 1.5s, 2m30s, 1d6h.
func elapsed(d time.Duration) string {
	if d < 0 {
		return "-" + elapsed(-d)
	}
	switch {
	case d < time.Minute:
		return d.Round(time.Millisecond).String()
	case d < time.Hour:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Second)
	}
	out := ""
	if days := d / (24 * time.Hour); days > 0 {
		out, d = fmt.Sprintf("%dd", days), d%(24*time.Hour)
	}
	text := d.String()
	text = strings.Replace(text, "m0s", "m", 1)
	text = strings.Replace(text, "h0m", "h", 1)
	if out != "" && d == 0 {
		return out
	}
	return out + text
}

// description returns the text of a mark in lists and tooltips.
func (m Mark) description() string {
	name := string(m.Kind)
	switch m.Kind {
	case PodReady:
		name = "ready"
	case Unready:
		name = "not ready"
	case Note, "":
		name = ""
	}
	switch {
	case m.Text == "":
		return sanitize(name, 200)
	case name == "":
		return sanitize(m.Text, 200)
	}
	return sanitize(name+": "+m.Text, 200)
}
