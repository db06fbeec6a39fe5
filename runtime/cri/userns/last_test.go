package userns_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

// The kernel does not map the ID 2^32-1.
func TestTheLastBlockIsNotAllocated(t *testing.T) { // se-18
	const perPod = 1 << 30
	dir := t.TempDir()
	a, err := userns.New(userns.Config{RootDir: dir, PerPod: perPod, Range: userns.Range{First: 1 << 30, Length: 3 << 30}, MaxPods: 2})
	require.NoError(t, err)
	for i := range 2 {
		m, err := a.Allocate(types.UID(fmt.Sprint("pod-", i)))
		require.NoError(t, err)
		assert.Less(t, int64(m.UIDs[0].HostID)+int64(m.UIDs[0].Length), int64(1<<32))
	}
	_, err = a.Allocate("pod-2")
	require.ErrorContains(t, err, "all 2 blocks of IDs are in use")
	_, err = userns.New(userns.Config{RootDir: dir, PerPod: perPod, Range: userns.Range{First: 1 << 30, Length: 3 << 30}, MaxPods: 3})
	require.ErrorContains(t, err, "not enough for 3 pods")

	// A kubelet has allocated it to a pod that never started: the pod gets other IDs.
	dir = t.TempDir()
	record(t, dir, "last", 1<<32-65536)
	a, err = userns.New(userns.Config{RootDir: dir})
	require.NoError(t, err)
	require.NoError(t, a.Load())
	m, err := a.Allocate("last")
	require.NoError(t, err)
	assert.EqualValues(t, 65536, m.UIDs[0].HostID)
}

func record(t *testing.T, dir, pod string, first int64) string {
	t.Helper()
	path := filepath.Join(dir, "pods", pod, "userns")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	ids := fmt.Sprintf(`[{"hostId": %d, "containerId": 0, "length": 65536}]`, first)
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `{"uidMappings": %s, "gidMappings": %[1]s}`, ids), 0o600))
	return path
}

// After a change of the range or of idsPerPod the node does not start.
func TestARecordOfAnotherRangeNamesTheRemedy(t *testing.T) { // se-19
	for name, cfg := range map[string]userns.Config{
		"another range":    {Range: userns.Range{First: 1 << 20, Length: 110 * 65536}},
		"more IDs per pod": {PerPod: 131072},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.RootDir = t.TempDir()
			path := record(t, cfg.RootDir, "web", 131072)
			a, err := userns.New(cfg)
			require.NoError(t, err)
			err = a.Load()
			for _, text := range []string{path, "65536 IDs from 131072", "/etc/subuid", "idsPerPod", "remove this file"} {
				require.ErrorContains(t, err, text)
			}
		})
	}
}
