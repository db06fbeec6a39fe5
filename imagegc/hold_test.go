package imagegc_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/internal/seedrun"
)

func TestNothingIsRemovedBeforeAllPodsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(100)
		w.pull("a:1", layer("a", 99))
		var ready atomic.Bool
		cfg := w.config()
		cfg.Policy, cfg.Pods = imagegc.Policy{MinAge: -1}, func() ([]*v1.Pod, bool) { return nil, ready.Load() }
		m := running(t, cfg)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.True(t, w.has("a:1"), "after a restart of the machine nothing runs yet")
		assert.Empty(t, w.emitted(), "which is no failure")
		_, err := m.DeleteUnused(t.Context())
		require.ErrorIs(t, err, imagegc.ErrNotSynced)
		ready.Store(true)
		freed, err := m.DeleteUnused(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 99, freed)
		w.pull("b:1", layer("b", 99))
		ready.Store(false)
		time.Sleep(6 * time.Minute)
		ready.Store(true)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		assert.False(t, w.has("b:1"), "it does not take another period")
	})
}

// Pods start and stop while images are collected as fast as possible. An image that a
// pod has pinned, and whose existence it has checked, exists until its container is
// created; from then on it is in use.
func TestAnImageThatAPodIsAboutToUseIsNotRemoved(t *testing.T) {
	w := newWorld(100)
	cfg := w.config()
	cfg.Policy = imagegc.Policy{MinAge: -1, HighPercent: new(int32(0)), LowPercent: new(int32(0))}
	cfg.Pods = nil
	m := newManager(t, cfg)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			_, _ = m.DeleteUnused(ctx)
		}
	})
	pulls, random := 0, seedrun.Rand(t)
	for i := range 1000 {
		pod := podWith(fmt.Sprint("web", i), "web:1")
		release, err := m.AcquireImages(ctx, pod)
		require.NoError(t, err)
		if !w.has("web:1") {
			w.pull("web:1", layer("a", 10))
			pulls++
		}
		if i%3 == 0 {
			time.Sleep(time.Duration(random.IntN(50)) * time.Microsecond) // the pull, the mounts
		}
		require.True(t, w.has("web:1"), "container %d cannot be made", i)
		w.use(pod.Name, "web:1")
		release()
		require.True(t, w.has("web:1"), "container %d runs without its image", i)
		if i%2 == 0 {
			time.Sleep(time.Duration(random.IntN(50)) * time.Microsecond)
			require.True(t, w.has("web:1"))
		}
		w.unuse(pod.Name)
	}
	stop()
	wg.Wait()
	t.Logf("pulled %d times", pulls)
}

// The pod waits for the removal of its first image. Its second is not removed meanwhile.
func TestNoOtherImageOfAWaitingPodIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(100)
		w.pull("first:1", layer("a", 10))
		time.Sleep(time.Second)
		w.pull("second:1", layer("b", 10))
		w.onRemove = func(string) { time.Sleep(10 * time.Second) }
		cfg := w.config()
		cfg.Policy, cfg.Pods = imagegc.Policy{MinAge: -1, HighPercent: new(int32(0)), LowPercent: new(int32(0))}, nil
		m := newManager(t, cfg)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = m.DeleteUnused(t.Context()) })
		time.Sleep(time.Second)
		pod := podWith("web", "first:1")
		pod.Spec.Containers = append(pod.Spec.Containers, podWith("web", "second:1").Spec.Containers...)
		release, err := m.AcquireImages(t.Context(), pod)
		require.NoError(t, err)
		wg.Wait()
		assert.Equal(t, []bool{false, true}, []bool{w.has("first:1"), w.has("second:1")})
		release()
	})
}

func TestEnsureWaitsForRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(100)
		w.pull("web:1", layer("a", 90))
		w.onRemove = func(string) { time.Sleep(10 * time.Second) }
		cfg := w.config()
		cfg.Policy.MinAge = -1
		m := newManager(t, cfg)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = m.Collect(t.Context()) })
		time.Sleep(time.Second)

		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := m.Acquire(impatient, "docker.io/library/web:1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		other, err := m.Acquire(t.Context(), "other")
		require.NoError(t, err, "others don't wait")
		other()

		began := time.Now()
		release, err := m.Acquire(t.Context(), "other", "web:1", "")
		require.NoError(t, err)
		assert.Equal(t, 8*time.Second, time.Since(began))
		assert.False(t, w.has("web:1"), "it must be pulled again")
		release()
		release()
		wg.Wait()
	})
}

func TestAPodAddedDuringAPassKeepsItsImage(t *testing.T) {
	w := newWorld(100)
	w.pull("a:1", layer("a", 50))
	w.pull("b:1", layer("b", 45))
	w.onRemove = func(id string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pods = append(w.pods, podWith("web", "b:1"))
	}
	cfg := w.config()
	cfg.Policy.MinAge = -1
	report, err := newManager(t, cfg).Collect(t.Context())
	require.NoError(t, err)
	assert.Len(t, report.Removed, 1)
	w.mu.Lock()
	w.others = 50
	w.mu.Unlock()
	assert.True(t, w.has("b:1"))
	_, err = newManager(t, cfg).Collect(t.Context())
	var short *imagegc.ShortageError
	require.ErrorAs(t, err, &short)
	assert.True(t, w.has("b:1"))
}
