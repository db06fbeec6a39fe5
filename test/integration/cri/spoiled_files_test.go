//go:build unix

package cri_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A container that makes its /etc/hosts 8 TiB and its termination message 10 GiB
// restarts like any other and costs the agent no memory; and a log that became a
// FIFO, or 10 GiB, neither blocks the pod's status nor fills the memory.
func TestIntegrationSpoiledFilesOfContainers(t *testing.T) {
	rt, _, _, dir := onContainerd(t)
	data := t.TempDir()
	web := script("web", `if [ -e /data/spoiled ]; then stat -c %s /etc/hosts > /data/size; `+untilTERM+`; fi
set -e
truncate -s 8796093022208 /etc/hosts
truncate -s 10737418240 /dev/termination-log
stat -c %s /etc/hosts > /data/spoiled
exit 1`)
	web.TerminationMessagePolicy = v1.TerminationMessageFallbackToLogsOnError
	web.VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	pod := podOf(web)
	pod.UID = types.UID(fmt.Sprintf("it-%d", time.Now().UnixNano()))
	pod.Spec.Volumes = []v1.Volume{{Name: "data"}}
	volumes := map[string]runtime.Volume{"data": {Path: data}}
	hosts := filepath.Join(dir, "root", "pods", string(pod.UID), "etc-hosts")

	drive(t, rt, pod, volumes, func(st *runtime.PodStatus) bool {
		c := st.Container("web")
		return c != nil && c.State == runtime.ContainerExited
	})
	require.Equal(t, "8796093022208\n", readFile(t, filepath.Join(data, "spoiled")))
	before := memoryOf(t)
	st := drive(t, rt, pod, volumes, func(st *runtime.PodStatus) bool {
		c := st.Container("web")
		_, err := os.Stat(filepath.Join(data, "size"))
		return err == nil && c.State == runtime.ContainerRunning && c.RestartCount == 1
	})
	before.grewLittle(t, "a restart after truncate -s 8T /etc/hosts")
	size, err := strconv.Atoi(strings.TrimSpace(readFile(t, filepath.Join(data, "size"))))
	require.NoError(t, err)
	assert.Less(t, size, 4096, "bytes of /etc/hosts in the restarted container")
	assert.Contains(t, readFile(t, hosts), st.IPs[0]+"\tweb\n")
	ended := func() runtime.ContainerStatus { return messageOf(t, rt, pod.UID) }
	assert.Len(t, ended().Message, 4096, "the end of 10 GiB")

	// From here on, the message is read from the end of the log.
	require.NoError(t, os.Truncate(filepath.Join(dir, "root", "pods", string(pod.UID), "containers", "web", "00000000"), 0))
	log := filepath.Join(dir, "pods", "prod_web_"+string(pod.UID), "web", "0.log")
	require.NoError(t, os.Remove(log))
	require.NoError(t, syscall.Mkfifo(log, 0o644))
	assert.Empty(t, ended().Message, "no message is read from a FIFO")
	require.NoError(t, os.Remove(log))
	end := []byte("\n2026-01-01T00:00:00Z stdout F the end\n")
	require.NoError(t, os.WriteFile(log, nil, 0o640))
	f, err := os.OpenFile(log, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(end, 10<<30-int64(len(end)))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assert.Equal(t, "the end\n", ended().Message, "of a log of 10 GiB")
	before.grewLittle(t, "all of it")

	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
	require.NoError(t, rt.CollectGarbage(t.Context(), removed(pod.UID)))
	assert.NoDirExists(t, filepath.Dir(hosts))
	assert.NoDirExists(t, filepath.Dir(filepath.Dir(log)))
}

// messageOf returns the status of the exited container, and fails if PodStatus blocks.
func messageOf(t *testing.T, rt *cri.Runtime, uid types.UID) runtime.ContainerStatus {
	t.Helper()
	got := make(chan runtime.ContainerStatus, 1)
	go func() {
		defer close(got)
		st, err := rt.PodStatus(t.Context(), uid)
		if !assert.NoError(t, err) {
			return
		}
		for _, c := range st.Containers {
			if c.State == runtime.ContainerExited {
				got <- c
				return
			}
		}
	}()
	select {
	case c, ok := <-got:
		require.True(t, ok, "no exited container")
		return c
	case <-time.After(time.Minute):
		require.FailNow(t, "PodStatus blocks")
		return runtime.ContainerStatus{}
	}
}

// memory is the memory usage of this process, in bytes.
type memory struct{ heap, resident int64 }

// memoryOf starts the measurement of the peak.
func memoryOf(t *testing.T) memory {
	t.Helper()
	require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)) // resets the peak to the current resident size
	return memory{heap(), peak(t)}
}

// grewLittle asserts that the live heap grew by less than 1 MiB, and that the peak of
// the resident memory shows no more than what calls to the runtime allocate meanwhile.
func (m memory) grewLittle(t *testing.T, what string) {
	t.Helper()
	now := memory{heap(), peak(t)}
	t.Logf("%s: the heap grew by %d KiB, the peak of resident memory by %d KiB", what, (now.heap-m.heap)>>10, (now.resident-m.resident)>>10)
	assert.Less(t, now.heap-m.heap, int64(1<<20), "%s: growth of the heap", what)
	assert.Less(t, now.resident-m.resident, int64(16<<20), "%s: growth of the peak of resident memory", what)
}

func heap() int64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func peak(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range bytes.Lines(status) {
		var kib int64
		if _, err := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	require.Fail(t, "no VmHWM")
	return 0
}
