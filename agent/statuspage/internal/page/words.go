package page

import (
	"fmt"
	"strings"
	"time"
)

// How much is shown of what others have written, in characters: of a name, of a
// message in a list of many, and of one where it is about one pod.
const (
	short = 80
	brief = 200
	full  = 4096
)

// age says how long something took, or is ago: the two largest units of it.
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

// size says how many bytes these are.
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

// cpu says how much of a CPU that is, from billionths.
func cpu(n uint64) string {
	if n < 1_000_000 {
		return "< 0.001"
	}
	return fmt.Sprintf("%.3f", float64(n)/1e9)
}

// count puts commas into a number.
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

// many says how many there are of something.
func many(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
