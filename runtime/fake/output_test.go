package fake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/seedrun"
)

// Skipping lines and printing them lead to the same position.
func TestSkippingLinesMatchesPrintingThem(t *testing.T) {
	rnd := seedrun.Rand(t)
	for range 300 {
		var lines []LogLine
		for range rnd.IntN(5) {
			l := LogLine{Text: "%d", After: time.Duration(rnd.IntN(3)) * time.Second}
			if rnd.IntN(2) == 0 {
				l.Every, l.Times = time.Duration(1+rnd.IntN(3))*time.Second, 1+rnd.IntN(4)
			}
			lines = append(lines, l)
		}
		lines = append(lines, LogLine{Text: "end %d", Every: time.Duration(1+rnd.IntN(4)) * time.Second})
		now := time.Duration(rnd.IntN(40)) * 500 * time.Millisecond
		printed, skipped := Output{lines: lines}, Output{lines: lines}
		for at, ok := printed.Next(); ok && at <= now; at, ok = printed.Next() {
			printed.Print()
		}
		skipped.Skip(now)
		require.Equal(t, printed, skipped, "%+v at %v", lines, now)
	}
}

func TestYearsOfLinesAreSkippedAtOnce(t *testing.T) {
	p := Behavior{Logs: []LogLine{{Every: time.Millisecond}}}.Output()
	p.Skip(9 * 365 * 24 * time.Hour)
	at, ok := p.Next()
	assert.True(t, ok)
	assert.Equal(t, 9*365*24*time.Hour+time.Millisecond, at)
}
