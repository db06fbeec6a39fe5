package member

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, failure := 0, error(nil)
		read := cached(time.Minute, func(context.Context) (int, error) { calls++; return calls, failure })
		for range 7 {
			got, err := read(t.Context())
			assert.NoError(t, err)
			assert.Equal(t, 1, got)
			time.Sleep(10 * time.Second)
		}
		failure = errors.New("down")
		_, err := read(t.Context())
		assert.ErrorIs(t, err, failure)
		failure = nil
		got, err := read(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, 3, got, "an error is not cached")
	})
}
