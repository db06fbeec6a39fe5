package page

import (
	"fmt"
	"strings"
	"time"
)

// Bounds of texts in characters: of a name, of a message in a list, and of a message on
// the page of a pod.
const (
	short = 80
	brief = 200
	full  = 4096
)

// age formats a duration with its two largest units.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return two(d, time.Minute, "min", time.Second, "s")
	case d < 24*time.Hour:
		return two(d, time.Hour, "h", time.Minute, "min")
	}
	return two(d, 24*time.Hour, "d", time.Hour, "h")
}

func two(d, large time.Duration, l string, small time.Duration, s string) string {
	text := fmt.Sprintf("%d %s", d/large, l)
	if rest := d % large / small; rest > 0 && d < 10*large {
		text += fmt.Sprintf(" %d %s", rest, s)
	}
	return text
}

// size formats a number of bytes.
func size(n uint64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for ; f >= 1024 && i < len(units)-1; i++ {
		f /= 1024
	}
	format := "%.1f %ciB"
	if f >= 100 {
		format = "%.0f %ciB"
	}
	return fmt.Sprintf(format, f, units[i])
}

// cpu formats billionths of a CPU.
func cpu(n uint64) string {
	if n < 1_000_000 {
		return "< 0.001"
	}
	return fmt.Sprintf("%.3f", float64(n)/1e9)
}

// count formats a number with commas.
func count(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func (u Unit) words(n int64) string {
	if u == Bytes {
		return size(uint64(max(n, 0)))
	}
	return count(n)
}

// many formats a number with its noun.
func many(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
