package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestATimeLimitCancelsTheCallThatReachesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		l := timeLimit{parent: ctx, d: time.Second}
		first := l.begin()
		time.Sleep(999 * time.Millisecond)
		assert.False(t, l.end())
		time.Sleep(time.Minute)
		assert.NoError(t, first.Err(), "no limit between calls")

		second := l.begin()
		assert.Equal(t, first, second)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.ErrorIs(t, second.Err(), context.Canceled)
		assert.True(t, l.end())

		third := l.begin()
		assert.NoError(t, third.Err())
		stop()
		assert.ErrorIs(t, third.Err(), context.Canceled)
		assert.False(t, l.end(), "it is the parent's end")
		l.release()
	})
}

func BenchmarkTimeLimit(b *testing.B) {
	b.Run("timeLimit", func(b *testing.B) {
		b.ReportAllocs()
		l := timeLimit{parent: b.Context(), d: time.Minute}
		defer l.release()
		for b.Loop() {
			l.begin()
			l.end()
		}
	})
	b.Run("WithTimeout", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, cancel := context.WithTimeout(b.Context(), time.Minute)
			cancel()
		}
	})
}
