package replay_test

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
	"github.com/kubeparts/kubeparts/volume"
)

// setup returns a recording of a pod that is desired from the first second on, with other frames.
func setup(t *testing.T, others ...record.Frame) *replay.Recording {
	start := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	frames := []record.Frame{{Header: &record.Header{Start: start, File: 1, Node: "node-1"}}}
	frames = append(frames, others...)
	frames = append(frames,
		record.Frame{At: time.Second, Pods: &record.Pods{Source: "api", Changed: []*v1.Pod{pod("web", container("main", "nginx"))}}},
		record.Frame{At: time.Minute, End: &record.End{}})
	r, err := replay.Read(sequence(frames))
	require.NoError(t, err)
	return r
}

// While the recorded process did not run, the replayed agent does nothing.
func TestAPauseIsReplayed(t *testing.T) {
	for _, took := range []time.Duration{0, 20 * time.Second} {
		r := setup(t, record.Frame{At: 500*time.Millisecond + took, Pause: &record.Pause{Took: took}})
		result, err := replay.Run(t.Context(), r, replay.Options{})
		require.NoError(t, err)
		require.NotNil(t, result.Divergence)
		assert.InDelta(t, max(1, 0.5+took.Seconds()), result.Divergence.At.Seconds(), 0.3)
	}
}

// Whatever a recording contains, files are written below the directory of the replay
// only, and a damaged one is no error.
func TestRecordedStateIsNotTrusted(t *testing.T) {
	for _, s := range []record.State{
		{File: "../../escape", Content: json.RawMessage(`{}`)}, {File: "/escape", Content: json.RawMessage(`{}`)}, {File: "."},
		{File: "pods/uid-web/runtime.json", Damaged: true}, {File: "pods/uid-web/runtime.json", Content: json.RawMessage(`[1]`)},
		{File: record.ProbesFile, Content: json.RawMessage(`"x"`)}, {Pod: "uid-web"}, {},
	} {
		t.Run(fmt.Sprint(s.File, s.Damaged), func(t *testing.T) {
			dir := t.TempDir()
			result, err := replay.Run(t.Context(), setup(t, record.Frame{State: &s}), replay.Options{Dir: dir})
			if s.File != "." {
				require.NoError(t, err)
				assert.NotNil(t, result.Divergence)
			}
			assert.NoFileExists(t, dir+"/escape")
		})
	}
}

// cgroupsOnce do not exist once while the pod runs.
type cgroupsOnce struct {
	*operations
	lost atomic.Bool
}

func (c *cgroupsOnce) Has(*v1.Pod) bool {
	return !c.lost.CompareAndSwap(true, false)
}

// A cgroup that the agent did not find was an input: the containers are restarted.
func TestAMissingCgroupIsReplayed(t *testing.T) {
	ops := &operations{failed: map[string]bool{}, report: func(volume.OperationInfo) {}}
	groups := &cgroupsOnce{operations: ops}
	cfg := nodeConfig{latency: 20 * time.Millisecond, seed: 1}
	cfg.adjust = adjusting(func(c *agent.Config) { c.Subsystems.Cgroups = groups })
	dir := recordNode(t, cfg, func(n node) {
		n.source.Set(pod("web", container("main", "nginx")), pod("other", container("main", "nginx")))
		time.Sleep(time.Minute)
		groups.lost.Store(true)
		time.Sleep(3 * time.Minute)
	})
	files, err := record.Files(dir)
	require.NoError(t, err)
	missing, stops := map[types.UID]int{}, 0
	for f, err := range record.ReadFiles(files...) {
		require.NoError(t, err)
		if f.Operation != nil && f.Operation.Name == "missing" {
			missing[f.Operation.Pod]++
		}
		if f.Call != nil && f.Call.Method == "StopContainer" {
			stops++
		}
	}
	require.Len(t, missing, 1)
	require.Equal(t, 1, stops)
	result, err := replay.Run(t.Context(), open(t, dir), replay.Options{})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
}
