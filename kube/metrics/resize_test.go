package metrics

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
)

func TestPriorityBuckets(t *testing.T) {
	for priority, want := range map[int32]string{
		math.MaxInt32: "system-critical", 2_000_000_000: "system-critical", 1_999_999_999: "high", 100_000: "high", 99_999: "medium", 1: "medium",
		0: "normal", -1: "low", -999: "low", -1000: "very-low", math.MinInt32: "very-low",
	} {
		assert.Equal(t, want, priorityBucket(&v1.Pod{Spec: v1.PodSpec{Priority: &priority}}), priority)
	}
	assert.Equal(t, "normal", priorityBucket(new(v1.Pod)))
}
