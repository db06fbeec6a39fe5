package agent

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/runonce/runoncetest"
	"github.com/kubeparts/kubeparts/runtime"
)

type checker func(ctx context.Context) (runtime.Health, error)

func (c checker) Check(ctx context.Context) (runtime.Health, error) { return c(ctx) }

func TestHealthReportsTheRuntimesError(t *testing.T) { // sl-3
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		h := newRuntimeHealth(checker(func(ctx context.Context) (runtime.Health, error) {
			switch since := time.Since(began); {
			case since < 10*time.Second:
				return runtime.Health{}, errors.New("connection refused")
			case since < 20*time.Second:
				return runtime.Health{Runtime: errors.New("starting"), Network: errors.New("cni config uninitialized")}, nil
			case since < 60*time.Second:
				return runtime.Health{}, nil
			default: // it hangs
				<-ctx.Done()
				return runtime.Health{}, ctx.Err()
			}
		}))
		assert.EqualError(t, h.Runtime(), "container runtime status check may not have completed yet")
		assert.EqualError(t, h.Network(), "network state unknown", "sl-5")
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- h.run(ctx) }()
		at := func(seconds int) {
			time.Sleep(time.Until(began.Add(time.Duration(seconds)*time.Second + time.Millisecond)))
		}
		at(5)
		assert.EqualError(t, h.Runtime(), "container runtime has not responded yet: connection refused")
		at(15)
		assert.EqualError(t, h.Runtime(), "container runtime not ready: starting")
		assert.EqualError(t, h.Network(), "cni config uninitialized")
		at(30)
		assert.NoError(t, h.Runtime())
		assert.NoError(t, h.Network())
		at(75)
		assert.NoError(t, h.Runtime(), "one late answer is no outage")
		at(95)
		assert.ErrorContains(t, h.Runtime(), "container runtime is down: last response 45s ago: context deadline exceeded")
		cancel()
		require.NoError(t, <-ran)
	})
}

func TestAReadyRuntimeIsCheckedLessOften(t *testing.T) { // sl-3
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		checks, result, failure := 0, runtime.Health{}, error(nil)
		respond := func(r runtime.Health, err error) {
			mu.Lock()
			defer mu.Unlock()
			result, failure = r, err
		}
		h := newRuntimeHealth(checker(func(context.Context) (runtime.Health, error) {
			mu.Lock()
			defer mu.Unlock()
			checks++
			return result, failure
		}))
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- h.run(ctx) }()
		checksIn := func(d time.Duration) int {
			mu.Lock()
			checks = 0
			mu.Unlock()
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return checks
		}
		checksIn(time.Second)
		assert.Equal(t, 6, checksIn(time.Minute))
		respond(runtime.Health{Network: errors.New("cni config uninitialized")}, nil)
		checksIn(10 * time.Second)
		assert.Equal(t, 12, checksIn(time.Minute))
		respond(runtime.Health{}, errors.New("connection refused"))
		checksIn(10 * time.Second)
		assert.Equal(t, 12, checksIn(time.Minute))
		assert.Len(t, h.changed, 1)
		<-h.changed
		respond(runtime.Health{}, nil)
		checksIn(10 * time.Second)
		assert.Len(t, h.changed, 1)
		cancel()
		require.NoError(t, <-ran)
	})
}

func TestARuntimeIsDownWhileTheNextCheckHangs(t *testing.T) { // sl-3
	synctest.Test(t, func(t *testing.T) {
		answers := true
		h := newRuntimeHealth(checker(func(ctx context.Context) (runtime.Health, error) {
			if !answers {
				<-ctx.Done()
			}
			return runtime.Health{}, ctx.Err()
		}))
		h.First(t.Context())
		answers = false
		ctx, cancel := context.WithCancel(t.Context())
		time.Sleep(5 * time.Second)
		ran := make(chan error)
		go func() { ran <- h.run(ctx) }()
		time.Sleep(27 * time.Second)
		assert.EqualError(t, h.Runtime(), "container runtime is down: last response 32s ago")
		cancel()
		require.NoError(t, <-ran)
	})
}

func TestTheFirstCheckHasATimeout(t *testing.T) { // sl-5
	synctest.Test(t, func(t *testing.T) {
		hangs := true
		h := newRuntimeHealth(checker(func(ctx context.Context) (runtime.Health, error) {
			if hangs {
				<-ctx.Done()
			}
			return runtime.Health{}, ctx.Err()
		}))
		began := time.Now()
		h.First(t.Context())
		assert.Equal(t, time.Second, time.Since(began))
		assert.Error(t, h.Network())
		hangs = false
		h.First(t.Context())
		assert.Equal(t, time.Second, time.Since(began), "one that answers is not waited for")
		assert.NoError(t, h.Network())
	})
}

func TestRuntimeHealthRunsOnce(t *testing.T) {
	h := newRuntimeHealth(checker(func(context.Context) (runtime.Health, error) { return runtime.Health{}, nil }))
	runoncetest.Check(t, "agent: RuntimeHealth", h.run)
}
