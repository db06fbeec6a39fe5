package lab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLimitsAreLongerOnASlowMachine(t *testing.T) {
	for slowness, want := range map[string]time.Duration{"": time.Minute, "1.5": 90 * time.Second, "10": 10 * time.Minute, "0": time.Minute, "slow": time.Minute} {
		t.Setenv("KUBEPARTS_SLOWNESS", slowness)
		assert.Equal(t, want, Limit(time.Minute), slowness)
	}
}
