package fake_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Skipping lines and printing them lead to the same position.
func TestSkippingLinesMatchesPrintingThem(t *testing.T) {
	rnd := seedrun.Rand(t)
	for range 300 {
		var lines []fake.LogLine
		for range rnd.IntN(5) {
			l := fake.LogLine{Text: "%d", After: time.Duration(rnd.IntN(3)) * time.Second}
			if rnd.IntN(2) == 0 {
				l.Every, l.Times = time.Duration(1+rnd.IntN(3))*time.Second, 1+rnd.IntN(4)
			}
			lines = append(lines, l)
		}
		lines = append(lines, fake.LogLine{Text: "end %d", Every: time.Duration(1+rnd.IntN(4)) * time.Second})
		now := time.Duration(rnd.IntN(40)) * 500 * time.Millisecond
		b := &fake.Behavior{Logs: lines}
		printed, skipped := b.Output(), b.Output()
		for at, ok := printed.Next(); ok && at <= now; at, ok = printed.Next() {
			printed.Print()
		}
		skipped.Skip(now)
		require.Equal(t, printed, skipped, "%+v at %v", lines, now)
	}
}

func TestYearsOfLinesAreSkippedAtOnce(t *testing.T) {
	o := (&fake.Behavior{Logs: []fake.LogLine{{Every: time.Millisecond}}}).Output()
	o.Skip(9 * 365 * 24 * time.Hour)
	at, ok := o.Next()
	assert.True(t, ok)
	assert.Equal(t, 9*365*24*time.Hour+time.Millisecond, at)
}
