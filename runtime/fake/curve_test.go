package fake

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/internal/seedrun"
)

func TestAUseGoesInStraightLinesBetweenPoints(t *testing.T) {
	ramp := []Point{{At: 10 * time.Second, Value: 1}, {At: 20 * time.Second, Value: 3}, {At: 20 * time.Second, Value: 2}, {At: 40 * time.Second, Value: 0}}
	for _, test := range []struct {
		name string
		c    Curve
		at   time.Duration
		now  float64
		used uint64 // in seconds of one core
	}{
		{name: "no points", at: time.Hour},
		{name: "before the start", c: Curve{Points: ramp}, at: -time.Second},
		{name: "before the first point", c: Curve{Points: ramp}, at: 5 * time.Second, now: 1, used: 5},
		{name: "on the first point", c: Curve{Points: ramp}, at: 10 * time.Second, now: 1, used: 10},
		{name: "on a line", c: Curve{Points: ramp}, at: 15 * time.Second, now: 2, used: 10 + 7},
		{name: "at a jump", c: Curve{Points: ramp}, at: 20 * time.Second, now: 2, used: 30},
		{name: "after a jump", c: Curve{Points: ramp}, at: 30 * time.Second, now: 1, used: 45},
		{name: "after the last point", c: Curve{Points: ramp}, at: time.Hour, now: 0, used: 50},
		{name: "level", c: Curve{Points: []Point{{Value: 0.5}}}, at: time.Hour, now: 0.5, used: 1800},
		{name: "one point cannot repeat", c: Curve{Points: []Point{{Value: 2}}, Repeat: true}, at: time.Minute, now: 2, used: 120},
		{name: "in the first turn", c: Curve{Points: ramp, Repeat: true}, at: 30 * time.Second, now: 1, used: 45},
		{name: "where a turn ends", c: Curve{Points: ramp, Repeat: true}, at: 40 * time.Second, now: 1, used: 50},
		{name: "in the third turn", c: Curve{Points: ramp, Repeat: true}, at: 95 * time.Second, now: 2, used: 100 + 17},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.InDelta(t, test.now, test.c.At(test.at), 1e-9)
			assert.Equal(t, test.used, test.c.Used(test.at)/uint64(time.Second))
		})
	}
}

func TestUsedTimeDoesNotFall(t *testing.T) {
	rnd := seedrun.Rand(t)
	for range 200 {
		c := Curve{Repeat: rnd.IntN(2) == 0}
		at := time.Duration(0)
		for range rnd.IntN(5) {
			at += time.Duration(rnd.Int64N(int64(time.Hour)))
			c.Points = append(c.Points, Point{At: at, Value: rnd.Float64() * 64})
		}
		now, last := time.Duration(0), uint64(0)
		for range 200 {
			now += time.Duration(rnd.Int64N(int64(10 * time.Minute)))
			used := c.Used(now)
			assert.GreaterOrEqual(t, used+1, last, "%+v at %v", c, now)
			last = used
		}
	}
}

func TestAHugeUseIsCutOff(t *testing.T) {
	c := Curve{Points: []Point{{Value: 1e18}, {At: 1, Value: 1e18}}, Repeat: true}
	assert.Equal(t, uint64(math.MaxInt64), c.Used(math.MaxInt64))
	assert.Zero(t, whole(math.NaN()))
	assert.Zero(t, whole(-1))
	assert.Equal(t, uint64(math.MaxInt64), whole(math.Inf(1)))
}
