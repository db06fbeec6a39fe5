package pause_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/internal/pause"
	"github.com/kubeparts/kubeparts/internal/seedrun"
)

func TestAlignedDelaysEndAtMultiples(t *testing.T) {
	const step = 5 * time.Second
	seen, random := map[time.Duration]int{}, seedrun.Rand(t)
	for range 10_000 {
		now := time.Duration(random.Int64N(int64(time.Hour)))
		d := pause.Aligned(now, time.Minute, 90*time.Second, step, random.IntN)
		assert.GreaterOrEqual(t, d, time.Minute)
		assert.Less(t, d, 90*time.Second)
		assert.Zero(t, (now+d)%step)
		seen[d/step]++
	}
	assert.Len(t, seen, 6)
	for d, n := range seen {
		assert.Greater(t, n, 1000, d)
	}
}

func TestAlignedDelaysAtTheLimits(t *testing.T) {
	const s = time.Second
	first := func(int) int { return 0 }
	last := func(n int) int { return n - 1 }
	for _, c := range []struct {
		now, least, most, step time.Duration
		intN                   func(int) int
		want                   time.Duration
	}{
		{3600 * s, 60 * s, 90 * s, 5 * s, first, 60 * s},
		{3600 * s, 60 * s, 90 * s, 5 * s, last, 85 * s},
		{3601 * s, 60 * s, 90 * s, 5 * s, first, 64 * s},
		{3601 * s, 60 * s, 90 * s, 5 * s, last, 89 * s},
		{3605*s - 1, 60 * s, 90 * s, 5 * s, first, 60*s + 1},
		{0, 0, 10 * s, 10 * s, last, 0},
		{3 * s, 10 * s, 15 * s, 0, first, 10 * s},
		{3 * s, 10 * s, 15 * s, 6 * s, first, 10 * s},
		{3 * s, 10 * s, 10 * s, s, first, 10 * s},
	} {
		assert.Equal(t, c.want, pause.Aligned(c.now, c.least, c.most, c.step, c.intN), c)
	}
}
