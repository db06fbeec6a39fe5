//go:build linux || darwin

package process_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/process"
)

// prober-37, prober-39: a probe that times out leaves no process behind, including its
// children.
func TestAHundredProbesOutOfTimeLeaveNoProcess(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), sh("app", "sleep 1000"))
	rt, err := cri.New(cri.Config{Name: process.Name, Runtime: n.Runtime, Images: n.Runtime, Dirs: cri.Dirs{Root: t.TempDir(), PodLogs: t.TempDir()}})
	require.NoError(t, err)
	pids := filepath.Join(t.TempDir(), "pids")
	to := prober.Target{
		Pod: &v1.Pod{}, Container: &v1.Container{Name: "app", Env: []v1.EnvVar{{Name: "PIDS", Value: pids}}},
		ContainerID: process.Name + "://" + id, Timeout: 150 * time.Millisecond,
		Probe: &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{
			Command: []string{"sh", "-c", "sleep 1000 & echo $$$$ $! >>$(PIDS); sleep 1000"},
		}}},
	}
	var begun []string
	for ; len(begun) == 0; to.Timeout *= 2 { // on a busy machine none may have begun in that time
		require.Less(t, to.Timeout, patience)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range 10 {
					out, err := prober.Exec{Runtime: rt}.Probe(t.Context(), to)
					assert.NoError(t, err)
					assert.Equal(t, runtime.ProbeFailure, out.Result, "%v", out)
				}
			})
		}
		wg.Wait()
		data, err := os.ReadFile(pids)
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		begun = strings.Fields(string(data))
	}
	for _, field := range begun {
		pid, err := strconv.Atoi(field)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, patience, 10*time.Millisecond, "process %d exists", pid)
	}
	t.Logf("%d processes have come and gone", len(begun))
}
