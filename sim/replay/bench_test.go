package replay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/sim/replay"
)

// BenchmarkIdleHour replays the start of 110 pods and an idle hour. Run it with -benchtime 1x.
func BenchmarkIdleHour(b *testing.B) {
	r := open(b, recordNode(b, nodeConfig{latency: 5 * time.Millisecond, seed: 1}, func(n node) {
		var pods []*v1.Pod
		for i := range 110 {
			pods = append(pods, pod(fmt.Sprint("pod-", i), container("main", "nginx")))
		}
		n.source.Set(pods...)
		time.Sleep(time.Hour)
	}))
	var length time.Duration
	for b.Loop() {
		result, err := replay.Run(b.Context(), r, replay.Options{})
		require.NoError(b, err)
		if result.Divergence != nil {
			b.Logf("diverged: %v", result.Divergence)
		}
		length += result.Until
	}
	b.ReportMetric(length.Seconds()/b.Elapsed().Seconds(), "x-real-time")
}
