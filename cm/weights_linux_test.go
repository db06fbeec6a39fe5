package cm_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
	"github.com/kubeparts/kubeparts/internal/lab"
)

// The weights of TestWeightsAreProportionalToRequests, as the kernel has them.
func TestIntegrationWeightsOfTheKernel(t *testing.T) { // cm-3
	lab.NeedHere(t, "root")
	if lab.InsideSystemd() {
		t.Skip("TestSystemdKeepsTheTree reads those of a slice")
	}
	tree, err := host.New(host.Config{})
	require.NoError(t, err)
	if tree.Facts().Version != 2 {
		t.Skip("cgroup v1 has shares")
	}
	base := cgroups.Name{fmt.Sprintf("kubeparts-weights-%d", os.Getpid())}
	t.Cleanup(func() { assert.NoError(t, tree.Remove(context.WithoutCancel(t.Context()), base)) })
	system := base.Child("system")
	require.NoError(t, tree.Apply(t.Context(), system, cgroups.Resources{CPUShares: new(int64(1024))}))
	for _, tc := range weightsOfKubelet {
		request := fmt.Sprintf("cpu=%dm memory=1Mi", tc.milli)
		m, err := cm.New(cm.Config{
			Tree: tree, Root: base, Capacity: list(fmt.Sprintf("cpu=%dm memory=64Gi", 2*tc.milli)), Reserved: cm.Reserved{System: list(fmt.Sprintf("cpu=%dm", tc.milli))},
			Enforce: cm.Enforcement{Keys: []string{"pods", "system-reserved"}, SystemReservedCgroup: system.String()},
		})
		require.NoError(t, err)
		require.NoError(t, m.Setup(t.Context()))
		g, b, e := pod("g-1", request+" / "+request), pod("b-1", request+" /"), pod("e-1", besteffort)
		for _, p := range []*v1.Pod{g, b, e} {
			require.NoError(t, m.Ensure(t.Context(), p))
		}
		for _, name := range []cgroups.Name{system, m.PodsRoot(), m.PodsRoot().Child("burstable"), m.PodName(g), m.PodName(b)} {
			assert.Equal(t, strconv.FormatInt(tc.weight, 10), files(tree, name)("cpu.weight"), "%dm: %s", tc.milli, name)
		}
		for _, name := range []cgroups.Name{m.PodsRoot().Child("besteffort"), m.PodName(e)} {
			assert.Equal(t, "1", files(tree, name)("cpu.weight"), "%dm: %s", tc.milli, name)
		}
		for _, p := range []*v1.Pod{g, b, e} {
			require.NoError(t, m.Remove(t.Context(), p.UID))
		}
	}
}

// A Guaranteed pod with 2 CPUs, ten with 200m, and a Burstable pod with 1 CPU compete for
// one CPU. Each gets CPU time in the ratio of its request.
func TestIntegrationCPUTimeFollowsRequests(t *testing.T) { // cm-3
	if !lab.InsideKernel() || lab.InsideSystemd() {
		t.Skip("it needs cgroup v2 and a CPU for itself: it runs in the emulated machine without systemd")
	}
	m, tree, _ := realNode(t, cm.Policy{}) // on CPU 0
	weights := map[*v1.Pod]float64{}       // of the kubelet
	usage := func() (each map[*v1.Pod]float64, sum float64) {
		freeze := filepath.Join(tree.Dirs(m.PodsRoot())[0], "cgroup.freeze")
		require.NoError(t, os.WriteFile(freeze, []byte("1"), 0)) // all at one time
		each = map[*v1.Pod]float64{}
		for p := range weights {
			s, err := tree.Stats(m.PodName(p))
			require.NoError(t, err)
			each[p] = float64(s.CPU.UsageNanos)
			sum += each[p]
		}
		require.NoError(t, os.WriteFile(freeze, []byte("0"), 0))
		return each, sum
	}
	run := func(p *v1.Pod, processes int) {
		require.NoError(t, m.Ensure(t.Context(), p))
		for range processes {
			cmd := exec.Command("/bin/busybox", "sh", "-c", "while :; do :; done")
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			require.NoError(t, os.WriteFile(filepath.Join(tree.Dirs(m.PodName(p))[0], "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0))
		}
	}
	add := func(uid string, weight float64, processes int, resources string) {
		p := pod(uid, resources)
		run(p, processes)
		weights[p] = weight
	}
	add("g-2", 79, 2, "cpu=2 memory=16Mi / cpu=2 memory=16Mi")
	for i := range 10 {
		add(fmt.Sprint("g-small-", i), 8, 1, "cpu=200m memory=8Mi / cpu=200m memory=8Mi")
	}
	add("b-1", 39, 1, "cpu=1 memory=8Mi /")

	before, begin := usage()
	require.Eventually(t, func() bool {
		s, err := tree.Stats(m.PodsRoot())
		require.NoError(t, err)
		return float64(s.CPU.UsageNanos)-begin > 30e9 // 30 s of CPU time
	}, 3*time.Minute, time.Second)
	after, end := usage()
	all := 0.0
	for _, weight := range weights {
		all += weight
	}
	small, smallWeights := 0.0, 0.0
	for p, weight := range weights {
		share := (after[p] - before[p]) / (end - begin)
		t.Logf("%s: %.4f of the CPU, %.4f by weight", p.UID, share, weight/all)
		if weight == 8 { // single ones vary more
			small, smallWeights = small+share, smallWeights+weight/all
			continue
		}
		assert.InEpsilon(t, weight/all, share, 0.05, p.UID)
	}
	assert.InEpsilon(t, smallWeights, small, 0.05, "the small ones")
}
