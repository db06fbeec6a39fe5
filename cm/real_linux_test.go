package cm_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
	"github.com/kubeparts/kubeparts/internal/lab"
)

// realNode is a manager on the machine's cgroups, below a cgroup of the test.
func realNode(t testing.TB, policy cm.Policy) (*cm.Manager, *host.Tree, cgroups.Name) {
	t.Helper()
	lab.NeedHere(t, "root")
	driver := cgroups.Cgroupfs
	if lab.InsideSystemd() {
		driver = cgroups.Systemd
	}
	tree, err := host.New(host.Config{Driver: driver})
	require.NoError(t, err)
	base := cgroups.Name{fmt.Sprintf("kubeparts-cm-%d", os.Getpid())}
	t.Cleanup(func() { assert.NoError(t, tree.Remove(context.WithoutCancel(t.Context()), base)) })
	m, err := cm.New(cm.Config{
		Tree: tree, Driver: driver, Root: base, Policy: policy, Enforce: cm.Enforcement{CPUs: cpuset.New(0)}, Capacity: list("cpu=4 memory=1Gi pid=32768"),
		Reserved: cm.Reserved{System: list("cpu=500m memory=256Mi pid=768")},
	})
	require.NoError(t, err)
	require.NoError(t, m.Setup(t.Context()))
	return m, tree, base
}

// files reads the files of a cgroup without this repository's readers: "" if a
// controller is missing.
func files(tree *host.Tree, name cgroups.Name) func(file string) string {
	return func(file string) string {
		for _, dir := range tree.Dirs(name) {
			if text, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
				return strings.TrimSpace(string(text))
			}
		}
		return ""
	}
}

func TestIntegrationEveryValueOfATree(t *testing.T) { // cm-13 … cm-18, cm-23, cm-38
	m, tree, base := realNode(t, cm.Policy{PodPids: 1024, Reserve: cgroups.ReserveTiered, HugePageSizes: []int64{2 << 20}})
	v2 := tree.Facts().Version == 2
	for _, p := range []*v1.Pod{pod("g-1", guaranteed), pod("b-1", burstable), pod("e-1", besteffort)} {
		require.NoError(t, m.Ensure(t.Context(), p))
	}
	unlimited := "9223372036854771712"
	want := map[string]map[string]string{
		"/kubepods":                   {"cpu.shares": "3584", "memory.limit_in_bytes": "805306368", "pids.max": "32000", "cpu.cfs_quota_us": "-1"},
		"/kubepods/burstable":         {"cpu.shares": "256", "memory.limit_in_bytes": unlimited, "pids.max": "max"},
		"/kubepods/besteffort":        {"cpu.shares": "2", "memory.limit_in_bytes": unlimited, "pids.max": "max"},
		"/kubepods/podg-1":            {"cpu.shares": "512", "cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000", "memory.limit_in_bytes": "67108864", "pids.max": "1024"},
		"/kubepods/burstable/podb-1":  {"cpu.shares": "256", "cpu.cfs_quota_us": "-1", "memory.limit_in_bytes": unlimited, "pids.max": "1024"},
		"/kubepods/besteffort/pode-1": {"cpu.shares": "2", "cpu.cfs_quota_us": "-1", "memory.limit_in_bytes": unlimited, "pids.max": "1024"},
	}
	if v2 {
		want = map[string]map[string]string{
			"/kubepods":                   {"cpu.weight": "137", "cpu.max": "max 100000", "memory.max": "805306368", "pids.max": "32000", "memory.min": "100663296", "memory.low": "33554432", "cpuset.cpus": "0"},
			"/kubepods/burstable":         {"cpu.weight": "10", "memory.max": "max", "pids.max": "max", "memory.low": "33554432", "hugetlb.2MB.max": "4611686018427387904"},
			"/kubepods/besteffort":        {"cpu.weight": "1", "memory.max": "max", "pids.max": "max", "memory.min": "0"},
			"/kubepods/podg-1":            {"cpu.weight": "20", "cpu.max": "50000 100000", "memory.max": "67108864", "memory.min": "67108864", "pids.max": "1024", "hugetlb.2MB.max": "0"},
			"/kubepods/burstable/podb-1":  {"cpu.weight": "10", "cpu.max": "max 100000", "memory.max": "max", "memory.low": "33554432", "memory.high": "max", "pids.max": "1024"},
			"/kubepods/besteffort/pode-1": {"cpu.weight": "1", "cpu.max": "max 100000", "memory.max": "max", "pids.max": "1024"},
		}
	}
	for path, values := range want {
		read := files(tree, base.Child(cgroups.ParsePath(path, cgroups.Cgroupfs)...))
		for file, value := range values {
			assert.Equal(t, value, read(file), "%s %s", path, file)
		}
	}

	// A resize, changes by another program, and removals.
	after := v1.ResourceRequirements{Requests: list("cpu=1 memory=128Mi"), Limits: list("cpu=1 memory=128Mi")}
	g := pod("g-1", guaranteed)
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		require.NoError(t, m.Resize(t.Context(), g, name, after)) // cm-43
	}
	group := base.Child("kubepods", "podg-1")
	has, err := tree.Read(group)
	require.NoError(t, err)
	assert.EqualValues(t, 100_000, *has.CPUQuota)
	assert.EqualValues(t, 128<<20, *has.Memory)
	require.NoError(t, tree.Apply(t.Context(), group, cgroups.Resources{Memory: new(int64(32 << 20)), Pids: new(int64(3))}))
	require.NoError(t, m.Sync(t.Context()))
	has, err = tree.Read(group)
	require.NoError(t, err)
	assert.EqualValues(t, 128<<20, *has.Memory)
	assert.EqualValues(t, 1024, *has.Pids)

	pods, err := m.Pods()
	require.NoError(t, err)
	assert.Len(t, pods, 3)
	require.NoError(t, m.Retain(t.Context(), func(uid types.UID) bool { return uid == "b-1" })) // cm-44
	pods, err = m.Pods()
	require.NoError(t, err)
	assert.Len(t, pods, 1)
	require.NoError(t, m.Remove(t.Context(), "b-1"))

	// Gone under us.
	require.NoError(t, m.Ensure(t.Context(), g))
	require.NoError(t, tree.Remove(t.Context(), base.Child("kubepods")))
	require.NoError(t, m.Ensure(t.Context(), g))
	_, err = tree.Read(group)
	require.NoError(t, err)
}

// The test moves processes of the whole machine; hence it runs on an emulated one
// only.
func TestIntegrationProcessesAreMovedToWhereTheyBelong(t *testing.T) { // cm-46
	if !lab.InsideKernel() {
		t.Skip("it moves processes of the whole machine: it runs in the emulated ones")
	}
	driver, agent, sys, home := cgroups.Cgroupfs, "/agent", "/others", "/sys/fs/cgroup/cgroup.procs"
	if lab.InsideSystemd() {
		driver, agent, sys, home = cgroups.Systemd, "/agent.slice", "/others.slice", "/sys/fs/cgroup/system.slice/job.service/cgroup.procs"
	}
	tree, err := host.New(host.Config{Driver: driver})
	require.NoError(t, err)
	m, err := cm.New(cm.Config{Tree: tree, Driver: driver, Pods: cm.PodCgroups{Flat: true}, Enforce: cm.Enforcement{Keys: []string{"none"}}, Processes: cm.ProcessCgroups{Agent: agent, System: sys}})
	require.NoError(t, err)
	stray := exec.Command("/bin/busybox", "sleep", "3600")
	require.NoError(t, stray.Start())
	t.Cleanup(func() {
		_ = stray.Process.Kill()
		_ = stray.Wait()
		require.NoError(t, os.WriteFile(home, []byte("0"), 0))
		for _, name := range []cgroups.Name{{"agent"}, {"others"}} {
			assert.NoError(t, tree.Remove(t.Context(), name))
		}
	})
	require.NoError(t, os.WriteFile("/sys/fs/cgroup/cgroup.procs", []byte(strconv.Itoa(stray.Process.Pid)), 0))
	require.NoError(t, m.Setup(t.Context()))
	require.NoError(t, m.Sync(t.Context()))
	for path, pid := range map[string]int{agent: os.Getpid(), sys: stray.Process.Pid} {
		is, err := tree.Inside(path, pid)
		require.NoError(t, err)
		assert.True(t, is, "%d is in %s", pid, path)
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		require.NoError(t, err)
		assert.Contains(t, string(text), "0::"+path)
	}
	strays, err := tree.Strays()
	require.NoError(t, err)
	assert.Empty(t, strays, "the kernel's stay, and so does the first one")
}
