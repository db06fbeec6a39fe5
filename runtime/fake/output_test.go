package fake_test

import (
	"context"
	"testing"
	"testing/synctest"
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

func TestLinesUntilTheExitAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fake.Behavior{Logs: []fake.LogLine{{Text: "%d", After: time.Second, Every: time.Second, Times: 3}}}
		follow := func(ctx context.Context, lifetime time.Duration, takes time.Duration) (lines []string, err error) {
			start, exited := time.Now(), make(chan struct{})
			time.AfterFunc(lifetime, func() { close(exited) })
			o := b.Output()
			err = o.Follow(ctx, start, exited, func() time.Time { return start.Add(lifetime) }, func(at time.Time, text string, _ bool) error {
				lines = append(lines, at.Sub(start).String()+" "+text)
				time.Sleep(takes)
				return nil
			})
			return lines, err
		}
		lines, err := follow(t.Context(), 2*time.Second, 0)
		require.NoError(t, err)
		assert.Equal(t, []string{"1s 1", "2s 2"}, lines, "a line at the time of the exit")
		lines, err = follow(t.Context(), 1500*time.Millisecond, time.Minute)
		require.NoError(t, err)
		assert.Equal(t, []string{"1s 1"}, lines, "a slow reader receives no lines after the exit")
		began := time.Now()
		lines, err = follow(t.Context(), time.Hour, 0)
		require.NoError(t, err)
		assert.Len(t, lines, 3)
		assert.Equal(t, time.Hour, time.Since(began), "it waits for the exit after the last line")
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		lines, err = follow(ctx, time.Hour, 0)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Len(t, lines, 2)
	})
}
