package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestABackoffDoublesUpToItsLimit(t *testing.T) {
	for failures, want := range []time.Duration{1, 1, 2, 4, 5, 5} {
		assert.Equal(t, want*time.Second, backoff(time.Second, 5*time.Second, failures), "%d failures", failures)
	}
	assert.Equal(t, 5*time.Second, backoff(time.Second, 5*time.Second, 1<<40))
}
