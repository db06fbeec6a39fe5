package runtimetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestBackoffDoublesUpToThirtyTimesTheFirst(t *testing.T) { // rt-91, rt-92
	const second = time.Second
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for restarts, want := range []time.Duration{0, 10, 20, 40, 80, 160, 300, 300, 300} {
		c := &runtime.ContainerStatus{RestartCount: int32(restarts), StartedAt: start, FinishedAt: start.Add(second)}
		assert.Equal(t, want*second, backoff(10*second).after(c), restarts)
		c.FinishedAt = start.Add(601 * second)
		assert.Zero(t, backoff(10*second).after(c), "after a run of ten minutes")
		c.FinishedAt = start.Add(second)
		assert.Zero(t, backoff(0).after(c), "without back-off")
	}
	assert.Equal(t, 300*second, backoff(10*second).after(&runtime.ContainerStatus{RestartCount: 1 << 30}), "no overflow")

	c := []*runtime.ContainerStatus{{RestartCount: 2, StartedAt: start, FinishedAt: start}}
	delay, until := backoff(10*second).Peek(nil, nil, c, start.Add(second))
	assert.Equal(t, 20*second, delay)
	assert.Equal(t, start.Add(20*second), until)
	_, until = backoff(10*second).Peek(nil, nil, c, until)
	assert.Zero(t, until, "the delay has passed")
}
