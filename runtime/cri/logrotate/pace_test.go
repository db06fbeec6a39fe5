package logrotate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestInspectionInterval(t *testing.T) {
	const mb = 1 << 20
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		after  time.Duration
		before int64
		size   int64
		want   time.Duration
		listen bool
	}{
		"it is full":                   {time.Second, 9 * mb, 10 * mb, 0, false},
		"half is left, at 5 MB/s":      {time.Second, 0, 5 * mb, 500 * time.Millisecond, false},
		"little is left, at 50 MB/s":   {100 * time.Millisecond, 4 * mb, 9 * mb, 10 * time.Millisecond, false},
		"less than one interval":       {100 * time.Millisecond, 4 * mb, 10*mb - 1, 3333 * time.Microsecond, false},
		"at 5 GB/s":                    {time.Millisecond, 0, 5 * mb, 2 * time.Millisecond, false},
		"idle":                         {time.Second, mb, mb, 90 * time.Millisecond, true},
		"a line now and then":          {time.Second, mb, mb + 100, 89999 * time.Microsecond, true},
		"it was truncated":             {time.Second, 9 * mb, 5 * mb, 500 * time.Millisecond, false},
		"a clock that was set back":    {-time.Second, 0, 5 * mb, 50 * time.Millisecond, false},
		"a slow one in a small period": {time.Second, 0, 2 * mb, 2 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			in, listen := next(logSize{at, tc.before}, logSize{at.Add(tc.after), tc.size}, 10*mb, 10*time.Second)
			if name == "a slow one in a small period" {
				in, listen = next(logSize{at, tc.before}, logSize{at.Add(tc.after), tc.size}, 10*mb, 80*time.Millisecond)
				tc.want, tc.listen = 80*time.Millisecond, true
			}
			assert.InDelta(t, tc.want, in, float64(100*time.Microsecond))
			assert.Equal(t, tc.listen, listen)
		})
	}
	in, listen := next(logSize{}, logSize{at, 0}, 10*mb, 10*time.Second)
	assert.Equal(t, 100*time.Millisecond, in, "the first interval assumes the fastest writer")
	assert.False(t, listen)
}

// A log that does not fill in the foreseeable future is inspected at the maximum interval.
func TestALogThatIsNeverFullRests(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, max := range []int64{64 << 30, 1 << 40, 1<<63 - 1} {
		in, listen := next(logSize{at, 100}, logSize{at.Add(10 * time.Second), 101}, max, 10*time.Second)
		assert.Equal(t, 10*time.Second, in, "%d", max)
		assert.True(t, listen, "%d", max)
		in, _ = next(logSize{}, logSize{at, 100}, max, 10*time.Second)
		assert.Equal(t, 10*time.Second, in, "%d", max)
	}
}
