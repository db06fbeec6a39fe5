package timeline

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// clean makes text that somebody else wrote fit for one line of a terminal or
// of a picture: what does not print is shown as U+FFFD (line ends, escape
// sequences, marks that turn the direction of writing), and what is longer
// than n runes is cut.
func clean(s string, n int) string {
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

// elapsed says a time since the beginning as people do: 0s, 1.5s, 2m30s, 1d6h.
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

// words say what a mark is in a list and when a pointer rests on it.
func (m Mark) words() string {
	what := string(m.What)
	switch m.What {
	case PodReady:
		what = "ready"
	case Unready:
		what = "not ready"
	case Gone:
		what = "nothing left"
	case Note, "":
		what = ""
	}
	switch {
	case m.Text == "":
		return clean(what, 200)
	case what == "":
		return clean(m.Text, 200)
	}
	return clean(what+": "+m.Text, 200)
}
