package podworker

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestDelayAfterACall(t *testing.T) {
	now := time.Unix(1000, 0)
	d := delays{resync: time.Minute, retry: 10 * time.Second, network: time.Second}
	half := func(d time.Duration) time.Duration { return d + d/2 }
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		next SyncResult
		err  error
		want time.Duration
	}{
		"success waits for the resync":                       {SyncResult{}, nil, 90 * time.Second},
		"an error is retried":                                {SyncResult{}, boom, 15 * time.Second},
		"a network that is not ready is retried soon":        {SyncResult{}, fmt.Errorf("pod: %w", ErrNetworkNotReady), 1500 * time.Millisecond},
		"a back-off is kept without jitter (lq-9, pw-49)":    {SyncResult{RetryAt: now.Add(20 * time.Second)}, boom, 20 * time.Second},
		"a back-off longer than the resync is limited":       {SyncResult{RetryAt: now.Add(5 * time.Minute)}, boom, 90 * time.Second},
		"a deadline after success":                           {SyncResult{NextSync: now.Add(3 * time.Second)}, nil, 3 * time.Second},
		"a time that has passed is now":                      {SyncResult{RetryAt: now.Add(-time.Second)}, boom, 0},
		"a deadline does not slow a retry":                   {SyncResult{NextSync: now.Add(time.Hour)}, boom, 15 * time.Second},
		"nor hide a back-off":                                {SyncResult{NextSync: now.Add(time.Hour), RetryAt: now.Add(time.Second)}, boom, time.Second},
		"a deadline does not slow the retry for the network": {SyncResult{NextSync: now.Add(time.Hour)}, ErrNetworkNotReady, 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			delay := d.after(now, tc.next, tc.err, 1, half)
			assert.Equal(t, tc.want, delay)
		})
	}
}

func TestAnUnresponsiveRuntimeIsRetriedSoonAtFirst(t *testing.T) {
	d := delays{resync: time.Minute, retry: 10 * time.Second, network: time.Second}
	away := fmt.Errorf("kill pod: %w", runtime.ErrUnavailable)
	for failures, seconds := range map[int]time.Duration{1: 1, 2: 2, 3: 4, 4: 8, 5: 10, 6: 10, 100: 10} {
		delay := d.after(time.Now(), SyncResult{}, away, failures, func(d time.Duration) time.Duration { return d })
		assert.Equal(t, seconds*time.Second, delay, failures)
	}
}

func TestJitterStaysWithinHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		jitter, random := NewJitter(), seedrun.Rand(t)
		for range 1000 {
			time.Sleep(time.Duration(random.Int64N(int64(5 * time.Second))))
			d := jitter("", time.Minute)
			assert.GreaterOrEqual(t, d, time.Minute)
			assert.Less(t, d, 90*time.Second)
			assert.Zero(t, (time.Since(start)+d)%(5*time.Second))

			d = jitter("", 10*time.Second)
			assert.GreaterOrEqual(t, d, 10*time.Second)
			assert.Less(t, d, 15*time.Second)
		}
	})
}

func TestTheQueueIsFIFO(t *testing.T) { // pw-20
	q := nameQueues{}
	q.push("web_default", "a")
	q.push("web_default", "b")
	q.push("web_default", "c")
	q.push("web_default", "a")
	assert.True(t, q.isFirst("web_default", "a"))
	assert.False(t, q.isFirst("web_default", "b"))
	assert.Equal(t, types.UID("a"), q.remove("web_default", "b"), "a waiting pod may leave the queue (pw-29)")
	assert.Equal(t, types.UID("c"), q.remove("web_default", "a"))
	assert.Equal(t, types.UID(""), q.remove("web_default", "c"))
	assert.Empty(t, q, "an empty queue takes no room")
	assert.Equal(t, types.UID(""), q.remove("web_default", "unknown"))
}
