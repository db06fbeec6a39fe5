package credentials_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
)

func TestARunEndsWithItsLastCallerOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var share credentials.Share
		runs, ended := 0, 0
		run := func(ctx context.Context) error {
			runs++
			select {
			case <-ctx.Done():
				ended++
				return ctx.Err()
			case <-time.After(time.Minute):
				return nil
			}
		}
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		errs := make(chan error, 3)
		go func() { errs <- share.Do(first, "a", run) }()
		synctest.Wait()
		go func() { errs <- share.Do(second, "a", run) }()
		go func() { errs <- share.Do(t.Context(), "b", run) }()
		synctest.Wait()
		assert.Equal(t, 2, runs, "one for each key")

		cancelFirst()
		assert.ErrorIs(t, <-errs, context.Canceled)
		assert.Zero(t, ended, "the second still waits")

		cancelSecond()
		assert.ErrorIs(t, <-errs, context.Canceled)
		assert.Equal(t, 1, ended)

		assert.NoError(t, <-errs, "the other key")
		assert.NoError(t, share.Do(t.Context(), "a", run), "and again")
		assert.Equal(t, 3, runs)

		assert.ErrorIs(t, share.Do(first, "a", run), context.Canceled)
		assert.Equal(t, 3, runs, "nothing is begun for who is gone already")
	})
}
