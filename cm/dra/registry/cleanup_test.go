package registry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dra-4
func TestSlicesAreDeletedAfterAGracePeriod(t *testing.T) {
	now := time.Unix(1_000, 0)
	c := cleanups{}
	c.schedule("b", now.Add(30*time.Second))
	c.schedule("b", now) // no effect
	c.schedule("a", now.Add(10*time.Second))
	due, next := c.due(now)
	assert.Empty(t, due)
	assert.Equal(t, now.Add(10*time.Second), next)
	c.cancel("a")
	due, _ = c.due(now.Add(30 * time.Second))
	assert.Equal(t, []string{"b"}, due)
	due, next = c.due(now.Add(time.Hour))
	assert.Empty(t, due, "it is in progress")
	assert.Zero(t, next)
	var waits []time.Duration
	for range 12 {
		c.attempted("b", now, assert.AnError)
		_, next = c.due(now)
		waits = append(waits, next.Sub(now))
		due, _ = c.due(next)
		require.Equal(t, []string{"b"}, due)
	}
	assert.InDelta(t, 1.1, waits[0].Seconds(), 0.1)
	assert.InDelta(t, 2.2, waits[1].Seconds(), 0.2)
	assert.InDelta(t, 330, waits[11].Seconds(), 30, "at most 5 minutes and the jitter")
	c.attempted("b", now, nil)
	assert.Empty(t, c)
	c.schedule("b", now)
	_, _ = c.due(now)
	c.cancel("b")
	c.attempted("b", now, assert.AnError)
	assert.Empty(t, c, "connected again")
}
