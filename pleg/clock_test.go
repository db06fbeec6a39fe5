package pleg_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
)

// jumped returns t as time.Now would have given it at the same instant, had the
// wall clock been set by d: the monotonic reading is the same. A time.Time
// with both has its seconds since 1885 in bits 30 to 62 of its first word.
func jumped(t time.Time, d time.Duration) time.Time {
	wall := (*uint64)(unsafe.Pointer(&t))
	*wall += uint64(d/time.Second) << 30
	return t
}

func TestJumped(t *testing.T) {
	now := time.Now()
	then := jumped(now, -time.Hour)
	assert.Zero(t, then.Sub(now), "by the monotonic clock")
	assert.Equal(t, now.Round(0).Add(-time.Hour), then.Round(0))
}

// Times in a bubble have no monotonic reading, so this is in real time; it does not
// wait unless it fails.
func TestSettingTheWallClockChangesNothing(t *testing.T) { // freshness follows from the reads
	for _, jump := range []time.Duration{-24 * time.Hour, -time.Minute, time.Minute, 24 * time.Hour} {
		n := newNode()
		n.start("u", "c")
		g := newGenerator(t, n, nil, pleg.Config{Period: time.Hour})
		stop := run(t, g)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		_, err := g.GetNewerThan(ctx, "u", time.Now())
		require.NoError(t, err)

		// A request by one clock is answered by the other: it neither waits, nor
		// returns an old status.
		n.exit("u", "c")
		status, err := g.GetNewerThan(ctx, "u", jumped(time.Now(), jump))
		require.NoError(t, err)
		assert.Equal(t, runtime.ContainerExited, status.Containers[0].State)
		n.start("v", "c")
		pods, err := g.PodsNewerThan(ctx, jumped(time.Now(), jump))
		require.NoError(t, err)
		assert.Len(t, pods, 2)

		// Nor does it read a cached status again.
		inspections := n.inspected("u")
		_, err = g.GetNewerThan(ctx, "u", jumped(time.Now().Add(-time.Minute), jump))
		require.NoError(t, err)
		assert.Equal(t, inspections, n.inspected("u"))

		assert.NoError(t, pleg.HealthyBy(g, jumped(time.Now(), jump)))
		assert.ErrorContains(t, pleg.HealthyBy(g, jumped(time.Now().Add(2*time.Hour), jump)),
			"threshold is 1h0m0s")
		stop()
	}
}

// A time read from a file has no monotonic reading. It is converted once.
func TestATimeWithoutAMonotonicReadingIsPlacedByTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode()
		n.start("u", "c")
		g := newGenerator(t, n, nil, pleg.Config{})
		defer run(t, g)()
		time.Sleep(betweenLists)
		began := time.Now()
		_, err := g.GetNewerThan(t.Context(), "u", time.Unix(0, 0))
		require.NoError(t, err)
		_, err = g.GetNewerThan(t.Context(), "u", time.Time{})
		require.NoError(t, err)
		assert.Equal(t, 1, n.inspected("u"))
		status, err := g.GetNewerThan(t.Context(), "u", time.Now().Round(0))
		require.NoError(t, err)
		assert.Equal(t, began, status.ObservedAt)
		_, err = g.GetNewerThan(t.Context(), "u", time.Now().Round(0).Add(3*time.Second))
		require.NoError(t, err)
		assert.Equal(t, 3*time.Second, time.Since(began))
	})
}
