package podworker

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
)

func TestDrainIsBounded(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	gone := errors.New("container runtime is down")
	for name, tc := range map[string]struct {
		after time.Duration // since the last pod terminated
		grace time.Duration
		down  time.Duration // time since the runtime failed; 0: it is up
		fails string
	}{
		"within the grace period":            {after: 30 * time.Second, grace: 30 * time.Second},
		"soon after the grace period":        {after: 59 * time.Second, grace: 30 * time.Second},
		"no pod terminates":                  {after: time.Minute, grace: 30 * time.Second, fails: "2 pods left: none terminated in 1m0s, with a grace period of 30s"},
		"a long grace period":                {after: time.Hour, grace: time.Hour},
		"the runtime restarts":               {after: 40 * time.Second, grace: time.Hour, down: 29 * time.Second},
		"the runtime is gone, a long period": {after: 40 * time.Second, grace: time.Hour, down: 30 * time.Second, fails: "2 pods left: container runtime is down"},
	} {
		t.Run(name, func(t *testing.T) {
			now := start.Add(tc.after)
			var l drainLimit
			l.observe(start, 2, tc.grace, nil)
			if tc.down > 0 {
				l.observe(now.Add(-tc.down), 2, tc.grace, gone)
				l.observe(now, 2, tc.grace, gone)
			}
			err := l.exceeded(now)
			if tc.fails == "" {
				assert.NoError(t, err)
				return
			}
			assert.EqualError(t, err, tc.fails)
		})
	}
	var l drainLimit
	l.observe(start, 2, 0, gone)
	l.observe(start.Add(time.Second), 1, 0, nil)
	assert.Zero(t, l.down, "the runtime is up again")
	assert.Equal(t, start.Add(time.Second), l.progress, "a pod has terminated")
}

func TestGracePeriodsOfPodsAreBounded(t *testing.T) {
	pod := func(seconds *int64) *v1.Pod { return &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: seconds}} }
	assert.Equal(t, 30*time.Second, gracePeriod(nil, nil), "an orphan")
	assert.Equal(t, 30*time.Second, gracePeriod(pod(nil), nil))
	assert.Equal(t, 7*time.Second, gracePeriod(pod(new(int64(7))), nil))
	assert.Equal(t, 2*time.Second, gracePeriod(pod(new(int64(60))), new(int64(2))))
	assert.Positive(t, gracePeriod(pod(new(int64(math.MaxInt64))), nil)+drainSlack)
}
