package main

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker"
)

func TestStoppingPodsIsBounded(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	gone := errors.New("container runtime is down")
	for name, tc := range map[string]struct {
		after time.Duration // since the last pod stopped
		grace time.Duration
		down  time.Duration // how long the runtime has been down; 0: it answers
		fails string
	}{
		"within the grace period":            {after: 30 * time.Second, grace: 30 * time.Second},
		"soon after the grace period":        {after: 59 * time.Second, grace: 30 * time.Second},
		"no pod stops":                       {after: time.Minute, grace: 30 * time.Second, fails: "stop pods: 2 are left: none stopped in 1m0s, with a grace period of 30s"},
		"a long grace period":                {after: time.Hour, grace: time.Hour},
		"the runtime restarts":               {after: 40 * time.Second, grace: time.Hour, down: 29 * time.Second},
		"the runtime is gone, a long period": {after: 40 * time.Second, grace: time.Hour, down: 30 * time.Second, fails: "stop pods: 2 are left running: container runtime is down"},
	} {
		t.Run(name, func(t *testing.T) {
			now := start.Add(tc.after)
			l := stopLimit{progress: start, left: 2, grace: tc.grace}
			if tc.down > 0 {
				l.observe(now.Add(-tc.down), gone)
				l.observe(now, gone)
			}
			err := l.exceeded(now)
			if tc.fails == "" {
				assert.NoError(t, err)
				return
			}
			assert.EqualError(t, err, tc.fails)
		})
	}
	var l stopLimit
	l.observe(start, gone)
	l.observe(start.Add(time.Second), nil)
	assert.Zero(t, l.down, "the runtime answers again")
}

func TestTheLongestGracePeriodCounts(t *testing.T) {
	pod := func(seconds *int64) *v1.Pod { return &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: seconds}} }
	assert.Equal(t, time.Duration(0), longestGrace(nil))
	assert.Equal(t, 30*time.Second, longestGrace([]podworker.PodState{{}}), "an orphan")
	assert.Equal(t, 7*time.Second, longestGrace([]podworker.PodState{{Pod: pod(new(int64(7)))}, {Pod: pod(new(int64(60))), GracePeriodSeconds: new(int64(2))}}))
	assert.Positive(t, longestGrace([]podworker.PodState{{Pod: pod(new(int64(math.MaxInt64)))}})+stopSlack)
}
