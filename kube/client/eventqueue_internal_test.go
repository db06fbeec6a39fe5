package client

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestAnEventQueueUsesMemoryForItsEventsOnly(t *testing.T) {
	q := newEventQueue(3)
	assert.Zero(t, cap(q.events))
	for _, reason := range []string{"a", "b", "c"} {
		assert.True(t, q.push(queued{event: runtime.Event{Reason: reason}}))
	}
	assert.False(t, q.push(queued{}), "it is full")
	assert.Equal(t, 3, q.len())
	var reasons string
	for e, ok := q.pop(); ok; e, ok = q.pop() {
		reasons += e.event.Reason
	}
	assert.Equal(t, "abc", reasons)
	assert.Zero(t, cap(q.events))
	assert.Len(t, q.ready, 1)
	assert.True(t, q.push(queued{}))
}
