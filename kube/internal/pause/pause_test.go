package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/kube/internal/pause"
)

func TestForReturnsInTimeOrWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		assert.NoError(t, pause.For(t.Context(), time.Hour))
		assert.Equal(t, time.Hour, time.Since(began))
		assert.NoError(t, pause.For(t.Context(), 0))
		assert.NoError(t, pause.For(t.Context(), -time.Hour))

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.ErrorIs(t, pause.For(ctx, time.Hour), context.DeadlineExceeded)
		assert.Equal(t, time.Hour+time.Minute, time.Since(began))
		assert.ErrorIs(t, pause.For(ctx, 0), context.DeadlineExceeded)
	})
}
