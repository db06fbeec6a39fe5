package eviction_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/eviction"
)

func TestASummaryThatHangsUntilItsContextEndsIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w := pressed(t)
		cfg := w.configured()
		calls, summary := 0, cfg.Summary
		cfg.Summary = func(ctx context.Context, pods bool) (*statsapi.Summary, error) {
			if calls++; calls == 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return summary(ctx, pods)
		}
		m, err := eviction.New(cfg)
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		time.Sleep(2*time.Minute - time.Second)
		assert.Empty(t, w.take())
		time.Sleep(20 * time.Second)
		assert.Contains(t, w.take()[2], "evicted hog")
		stop()
		require.NoError(t, <-ended)
	})
}

// A summary that does not return when its context is done is abandoned, and no second
// one is started in parallel.
func TestASummaryThatHangsForeverIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w := pressed(t)
		cfg := w.configured()
		cfg.Timeout = time.Minute
		release, again := make(chan struct{}), make(chan struct{})
		var calls atomic.Int32
		summary := cfg.Summary
		cfg.Summary = func(ctx context.Context, pods bool) (*statsapi.Summary, error) {
			switch calls.Add(1) {
			case 3:
				<-release
				return nil, errors.New("too late")
			case 100:
				<-again
			}
			return summary(ctx, pods)
		}
		w.pods[0].uses["memory.available"] = 0
		var failed []error
		cfg.Hooks.Passed = func(_ eviction.Result, err error) {
			if err != nil {
				failed = append(failed, err)
			}
		}
		m, err := eviction.New(cfg)
		require.NoError(t, err)
		require.NoError(t, m.Healthy(), "before the first pass")
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		time.Sleep(time.Minute)
		require.NoError(t, m.Healthy())
		goroutines := goruntime.NumGoroutine()
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		assert.EqualValues(t, 3, calls.Load())
		assert.LessOrEqual(t, goruntime.NumGoroutine(), goroutines)
		assert.EqualError(t, failed[0], "eviction: summary: not returned 5s after its context was canceled")
		assert.EqualError(t, failed[1], "eviction: summary: an earlier call has not returned for 1m15s")
		assert.EqualError(t, m.Healthy(), "eviction: node not measured for 59m40s: eviction: summary: an earlier call has not returned for 59m35s")

		// It finally returns.
		w.mu.Lock()
		w.pods[0].uses["memory.available"] = 3 << 29
		w.mu.Unlock()
		close(release)
		time.Sleep(20 * time.Second)
		assert.Contains(t, w.take()[2], "evicted hog")
		assert.NoError(t, m.Healthy())

		// And Run returns while it hangs.
		calls.Store(99)
		time.Sleep(20 * time.Second)
		began := time.Now()
		stop()
		require.NoError(t, <-ended)
		assert.LessOrEqual(t, time.Since(began), 5*time.Second)
		close(again)
	})
}

func TestANodeThatCannotBeMeasuredIsUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pressed(t)
		w.pods[0].uses["memory.available"] = 0
		w.broken = true
		m, err := w.manager()
		require.NoError(t, err)
		go func() { _ = m.Run(t.Context()) }()
		time.Sleep(time.Minute)
		assert.NoError(t, m.Healthy(), "for a while that may be")
		time.Sleep(3 * time.Minute)
		assert.ErrorContains(t, m.Healthy(), "eviction: node not measured for 4m0s: eviction: summary: a part of it is missing")
		w.mu.Lock()
		w.broken = false
		w.mu.Unlock()
		time.Sleep(11 * time.Second)
		assert.NoError(t, m.Healthy())
	})
}
