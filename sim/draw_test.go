package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/sim"
)

// Draw returns a schedule for any Options.
func TestAScheduleIsDrawnForOddOptions(t *testing.T) {
	for _, o := range []sim.Options{
		{Duration: 1}, {Duration: 3 * time.Millisecond}, {Duration: -time.Hour}, {Duration: 1<<63 - 1},
		{Pods: -1}, {Steps: -1}, {Pods: 1, Steps: 1, Duration: 1},
	} {
		for seed := range uint64(50) {
			assert.NotPanics(t, func() { assert.NotEmpty(t, sim.Draw(seed, o), "%+v", o) }, "%+v", o)
		}
	}
}
