package replay_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
)

// A probe soon before the end of its container may be made by one of the two agents only;
// earlier ones are made by both.
func TestTheLastProbeOfAContainerMayBeMissing(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, func(n node) {
		web := pod("web", probed(container("main", "nginx")))
		web.Spec.Containers[0].LivenessProbe.PeriodSeconds = 2
		n.source.Set(web)
		time.Sleep(41 * time.Second)
		n.source.Add(deleted(web))
		time.Sleep(20 * time.Second)
	}))
	var probes []time.Duration
	for f := range r.Frames() {
		if f.Probe != nil && f.Probe.Kind == "Liveness" {
			probes = append(probes, f.At)
		}
	}
	require.Greater(t, len(probes), 15)
	for name, test := range map[string]struct {
		drop     []time.Duration
		diverges bool
	}{
		"the last one": {probes[len(probes)-1:], false},
		"early ones":   {probes[4:8], true},
	} {
		t.Run(name, func(t *testing.T) {
			frames := slices.DeleteFunc(slices.Collect(r.Frames()), func(f record.Frame) bool {
				return f.Probe != nil && f.Probe.Kind == "Liveness" && slices.Contains(test.drop, f.At)
			})
			without, err := replay.Read(sequence(frames))
			require.NoError(t, err)
			result, err := replay.Run(t.Context(), without, replay.Options{Tolerance: 2900 * time.Millisecond})
			require.NoError(t, err)
			require.Equal(t, test.diverges, result.Divergence != nil, "%v", result.Divergence)
		})
	}
}
