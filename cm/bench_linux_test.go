package cm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// 1,000 pods get their cgroups and lose them, on the machine's hierarchy, compared
// with the directory operations and writes alone. Needs root, and cgroup v1.
func BenchmarkPodCgroups(b *testing.B) {
	const pods = 1000
	m, tree, base := realNode(b, cm.Policy{PodPids: 1024})
	if tree.Facts().Version != 1 {
		b.Skip("the raw writes are v1's")
	}
	b.Run("raw", func(b *testing.B) {
		write := func(dir, file, value string) {
			require.NoError(b, os.WriteFile(filepath.Join(dir, file), []byte(value), 0))
		}
		class := base.Child("kubepods", "burstable")
		cpuset := func(file string) string { return files(tree, class)(file) }
		cpus, mems := cpuset("cpuset.cpus"), cpuset("cpuset.mems")
		pass := func() {
			for i := range pods {
				for _, dir := range tree.Dirs(class.Child(fmt.Sprint("podraw", i))) {
					if strings.Contains(dir, "/devices/") {
						continue
					}
					require.NoError(b, os.Mkdir(dir, 0o755))
					switch {
					case strings.Contains(dir, "/cpu/"):
						write(dir, "cpu.shares", "256")
						write(dir, "cpu.cfs_period_us", "100000")
						write(dir, "cpu.cfs_quota_us", "-1")
						write(filepath.Dir(dir), "cpu.shares", strconv.Itoa(256*(i+1))) // cm-18
					case strings.Contains(dir, "/memory/"):
						write(dir, "memory.limit_in_bytes", "-1")
					case strings.Contains(dir, "/pids/"):
						write(dir, "pids.max", "1024")
					case strings.Contains(dir, "/cpuset/"):
						write(dir, "cpuset.cpus", cpus)
						write(dir, "cpuset.mems", mems)
					}
				}
			}
			for i := range pods {
				for _, dir := range tree.Dirs(class.Child(fmt.Sprint("podraw", i))) {
					if strings.Contains(dir, "/devices/") {
						continue
					}
					require.NoError(b, os.Remove(dir))
				}
			}
		}
		for b.Loop() {
			pass()
		}
	})
	b.Run("manager", func(b *testing.B) {
		pass := func() {
			for i := range pods {
				require.NoError(b, m.Ensure(b.Context(), pod(fmt.Sprint("p-", i), burstable)))
			}
			for i := range pods {
				require.NoError(b, m.Remove(b.Context(), pod(fmt.Sprint("p-", i)).UID))
			}
		}
		for b.Loop() {
			pass()
		}
	})
}

// The computation for one pod, without file access.
func BenchmarkPodResources(b *testing.B) {
	p := pod("p-1", guaranteed, burstable)
	policy := cm.Policy{PodPids: 1024}
	b.ReportAllocs()
	for b.Loop() {
		_ = policy.PodResources(p)
	}
}

func BenchmarkPodCgroupsInMemory(b *testing.B) {
	m, err := cm.New(cm.Config{Tree: cgroups.NewTree(cgroups.Facts{Version: 2, Controllers: every})})
	require.NoError(b, err)
	require.NoError(b, m.Setup(b.Context()))
	p := pod("p-1", guaranteed)
	for b.Loop() {
		require.NoError(b, m.Ensure(b.Context(), p))
		require.NoError(b, m.Remove(b.Context(), p.UID))
	}
}
