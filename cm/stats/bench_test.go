package stats_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/stats"
)

// crowd is a node of many pods.
func crowd(pods int) (*crt, *cgroups.Tree, func(types.UID) (cgroups.Name, bool)) {
	rt := new(crt)
	tree := cgroups.NewTree(cgroups.Facts{Version: 2, Controllers: []string{"cpu", "memory"}})
	group := func(uid types.UID) (cgroups.Name, bool) {
		return cgroups.Name{"kubepods", "burstable", "pod" + string(uid)}, true
	}
	for i := range pods {
		s, p := web(types.UID(fmt.Sprint("u", i)))
		rt.stats, rt.pods = append(rt.stats, s), append(rt.pods, p)
		name, _ := group(s.UID)
		tree.Use(name, cgroups.Stats{CPU: &cgroups.CPUStats{}, Memory: &cgroups.MemoryStats{}})
	}
	return rt, tree, group
}

// grouped implements stats.Pods.
type grouped struct {
	podFacts
	group func(types.UID) (cgroups.Name, bool)
}

func (g grouped) Cgroup(uid types.UID) (cgroups.Name, bool) { return g.group(uid) }

// a full summary of 110 pods, at most 20 ms. Warm is what readers get while
// Run is active; fresh is as requested by an eviction; cold builds all of it.
func BenchmarkSummaryOf110Pods(b *testing.B) {
	rt, tree, group := crowd(110)
	c, err := stats.New(stats.Config{NodeName: "n", Runtime: rt, Cgroups: tree, Pods: grouped{group: group}, Root: os.DirFS("/"), Disk: disk, NodeDir: "/"})
	require.NoError(b, err)
	_, err = c.Summary(b.Context(), false)
	require.NoError(b, err)
	b.Run("warm", func(b *testing.B) {
		for b.Loop() {
			_, _ = c.Summary(b.Context(), false)
		}
	})
	b.Run("fresh", func(b *testing.B) {
		for b.Loop() {
			_, _ = c.Summary(b.Context(), true)
		}
	})
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			cold, _ := stats.New(stats.Config{NodeName: "n", Runtime: rt, Cgroups: tree, Pods: grouped{group: group}, Root: os.DirFS("/"), Disk: disk, NodeDir: "/"})
			_, _ = cold.Summary(b.Context(), false)
		}
	})
}
