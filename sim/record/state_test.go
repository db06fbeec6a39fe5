package record_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/status"
)

func TestTheStateOnDiskIsRecorded(t *testing.T) {
	root := t.TempDir()
	for _, uid := range []string{"a", "b", "c"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "pods", uid), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "pods", "file"), nil, 0o600))
	require.NoError(t, checkpoint.Write(filepath.Join(root, "pods", "a", "runtime.json"), map[string]int{"attempts": 2}))
	require.NoError(t, os.WriteFile(filepath.Join(root, "pods", "b", "runtime.json"), []byte(`{"data":`), 0o600))
	require.NoError(t, checkpoint.Write(filepath.Join(root, record.ProbesFile), map[string]any{"c1": map[string]bool{"readiness": true}}))
	all := read(t, recorded(t, record.Config{Dir: t.TempDir()}, func(r *record.Recorder) {
		r.RuntimeState(root)
		r.RuntimeState(filepath.Join(root, "missing"))
		cfg := agent.Config{Adjust: []compose.Adjustment{
			compose.Adjust(func(c *prober.Config) { c.Path = filepath.Join(root, record.ProbesFile) }),
			compose.Adjust(func(c *status.Config) {
				c.Restore = func(uid types.UID) (v1.PodStatus, bool) {
					return v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{
						LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Message: marker}},
					}}}, uid == "a"
				}
			}),
		}}
		r.Agent(&cfg)
		statuses, probes := new(status.Config), new(prober.Config)
		require.NoError(t, compose.Apply(cfg.Adjust, probes))
		require.NoError(t, compose.Apply(cfg.Adjust, statuses))
		restored, ok := statuses.Restore("a")
		assert.True(t, ok)
		assert.Equal(t, marker, restored.ContainerStatuses[0].LastTerminationState.Terminated.Message, "only the recording is masked")
		_, ok = statuses.Restore("b")
		assert.False(t, ok)
	})...)
	var lines []string
	for _, f := range all {
		if f.State != nil {
			lines = append(lines, f.State.File+" "+string(f.State.Content)+string(f.State.Pod))
			assert.Equal(t, f.State.File == "pods/b/runtime.json", f.State.Damaged)
			assert.NotContains(t, f.String(), marker)
		}
	}
	assert.Equal(t, []string{
		`pods/a/runtime.json {"attempts":2}`, "pods/b/runtime.json ", `probes.json {"c1":{"readiness":true}}`, " a",
	}, lines)
}
