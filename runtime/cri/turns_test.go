package cri

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTurnsAreTakenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := &turns{fixed: 1}
		first, err := turns.take(t.Context(), runSandbox)
		require.NoError(t, err)
		var order []int
		for i := range 3 {
			go func() {
				one, err := turns.take(t.Context(), runSandbox)
				assert.NoError(t, err)
				order = append(order, i)
				one.end(nil)
			}()
			synctest.Wait()
		}
		assert.Empty(t, order)
		first.end(nil)
		first.end(nil) // has no effect
		synctest.Wait()
		assert.Equal(t, []int{0, 1, 2}, order)
		assert.Zero(t, turns.total)
	})
}

func TestACanceledCallerGivesUpItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := &turns{fixed: 1}
		first, err := turns.take(t.Context(), runSandbox)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := turns.take(ctx, runSandbox)
			failed <- err
		}()
		synctest.Wait()
		cancel()
		assert.ErrorIs(t, <-failed, context.Canceled)
		_, err = turns.take(ctx, runSandbox)
		assert.ErrorIs(t, err, context.Canceled)
		first.end(nil)
		next, err := turns.take(t.Context(), runSandbox)
		require.NoError(t, err)
		next.end(nil)
		assert.Zero(t, turns.total)
		assert.Empty(t, turns.waiting[runSandbox])
	})
}

// A hundred calls that hang do not keep the others waiting until they time out.
func TestCallsThatHangDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, begun := new(turns), time.Now()
		for range 100 {
			go func() {
				one, err := turns.take(t.Context(), runSandbox)
				assert.NoError(t, err)
				time.Sleep(4 * time.Minute)
				one.end(errors.New("timeout"))
			}()
		}
		synctest.Wait()
		one, err := turns.take(t.Context(), runSandbox)
		require.NoError(t, err)
		assert.Equal(t, 150*time.Second, time.Since(begun), "two at a time, three seconds each")
		time.Sleep(20 * time.Millisecond)
		one.end(nil)
		time.Sleep(5 * time.Minute)
		assert.Zero(t, turns.total)
		assert.Equal(t, pace{limit: 4, base: base(20 * time.Millisecond)}, turns.pace, "calls that failed are not measured")
	})
}

// One call of each kind may be made in any case, and pods that are nearly started come first.
func TestKindsDoNotBlockEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := &turns{fixed: 1}
		hanging, err := turns.take(t.Context(), runSandbox)
		require.NoError(t, err)
		for _, kind := range []startKind{startContainer, createContainer, runHostSandbox} {
			one, err := turns.take(t.Context(), kind)
			require.NoError(t, err)
			one.end(nil)
		}
		first, err := turns.take(t.Context(), startContainer)
		require.NoError(t, err)
		var order []startKind
		for _, kind := range []startKind{runSandbox, startContainer} {
			go func() {
				one, err := turns.take(t.Context(), kind)
				assert.NoError(t, err)
				order = append(order, kind)
				one.end(nil)
			}()
			synctest.Wait()
		}
		first.end(nil)
		synctest.Wait()
		hanging.end(nil)
		synctest.Wait()
		assert.Equal(t, []startKind{startContainer, runSandbox}, order)
	})
}

func TestThereMayBeNoLimit(t *testing.T) {
	turns := &turns{fixed: -1}
	for range 1000 {
		_, err := turns.take(t.Context(), runSandbox)
		require.NoError(t, err)
	}
}

// While calls take as long as one alone, twice as many follow each time.
func TestTheLimitDoublesWhileTheRuntimeIsFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, begun := new(turns), time.Now()
		done := make(chan struct{})
		for range 2 + 4 + 8 + 16 + 32 {
			go func() {
				one, err := turns.take(t.Context(), runSandbox)
				assert.NoError(t, err)
				time.Sleep(50 * time.Millisecond)
				one.end(nil)
				done <- struct{}{}
			}()
		}
		for range 2 + 4 + 8 + 16 + 32 {
			<-done
		}
		assert.InDelta(t, 0.25, time.Since(begun).Seconds(), 0.11)
	})
}

// Once the limit has grown, 200 pods that start at the same time do not wait for each other if the runtime does
// not delay their calls.
func TestTheLimitAllowsManyPodsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, burst := new(turns), time.Duration(0)
		for range 3 {
			begun := time.Now()
			var wg sync.WaitGroup
			for range 200 {
				wg.Go(func() {
					for _, kind := range []startKind{runSandbox, createContainer, startContainer} {
						one, err := turns.take(t.Context(), kind)
						assert.NoError(t, err)
						time.Sleep(50 * time.Millisecond)
						one.end(nil)
					}
				})
			}
			wg.Wait()
			burst = time.Since(begun)
		}
		assert.Equal(t, 150*time.Millisecond, burst)
	})
}
