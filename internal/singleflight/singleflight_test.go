package singleflight_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/internal/singleflight"
)

func TestARunEndsWithItsLastCallerOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share := singleflight.Group[int]{WaitForCanceled: true}
		runs, ended := 0, 0
		run := func(ctx context.Context) (int, error) {
			runs++
			select {
			case <-ctx.Done():
				ended++
				return 0, ctx.Err()
			case <-time.After(time.Minute):
				return 1, nil
			}
		}
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		errs := make(chan error, 3)
		do := func(ctx context.Context, key string) error {
			_, err := share.Do(ctx, key, run)
			return err
		}
		go func() { errs <- do(first, "a") }()
		synctest.Wait()
		go func() { errs <- do(second, "a") }()
		go func() { errs <- do(t.Context(), "b") }()
		synctest.Wait()
		assert.Equal(t, 2, runs, "one for each key")

		cancelFirst()
		assert.ErrorIs(t, <-errs, context.Canceled)
		assert.Zero(t, ended, "the second still waits")

		cancelSecond()
		assert.ErrorIs(t, <-errs, context.Canceled)
		assert.Equal(t, 1, ended)

		assert.NoError(t, <-errs, "the other key")
		assert.NoError(t, do(t.Context(), "a"), "and again")
		assert.Equal(t, 3, runs)

		assert.ErrorIs(t, do(first, "a"), context.Canceled)
		assert.Equal(t, 3, runs, "a canceled caller starts nothing")
	})
}
