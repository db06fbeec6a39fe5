package sim_test

import (
	"context"
	"flag"
	"fmt"
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/sim"
)

// started starts a node whose runtime is rt, in whatever time t runs, and
// returns what ends it.
func started(t testing.TB, cfg sim.NodeConfig) (node *sim.Node, stop func()) {
	t.Helper()
	node, err := sim.NewNode(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- node.Run(ctx) }()
	return node, func() {
		cancel()
		require.NoError(t, <-done)
	}
}

// podOf returns a pod whose containers do that.
func podOf(name string, policy v1.RestartPolicy, does ...fake.Behavior) *v1.Pod {
	s := sim.Shape{Policy: policy}
	for i, d := range does {
		s.Containers = append(s.Containers, sim.Container{Kind: sim.Main, Name: fmt.Sprint("c", i), Behavior: d})
	}
	return s.Pod(name, types.UID(name))
}

var scale = flag.Bool("scale", false, "whether the tests of what a node can carry load it fully, and not only a little")

func scaled(little, full int) int {
	if *scale {
		return full
	}
	return little
}

// heap returns how many bytes live, after a collection.
func heap() int64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A day of a node full of pods of two containers, of which one in ten crashes
// every hour, takes seconds.
func TestADayOfAFullNode(t *testing.T) {
	const pods = 110
	hours := time.Duration(scaled(1, 24))
	begun := time.Now()
	synctest.Test(t, func(t *testing.T) {
		rt := &runtimetest.Runtime{Backoff: 10 * time.Second}
		crashes := fake.Behavior{Exit: &fake.Exit{Code: 1, After: time.Hour}}
		rt.Behave(sim.Image(crashes), crashes)
		node, stop := started(t, sim.NodeConfig{Runtime: rt})
		var all []*v1.Pod
		for i := range pods {
			does := []fake.Behavior{{}, {}}
			if i%10 == 0 {
				does[1] = crashes
			}
			all = append(all, podOf(fmt.Sprint("web-", i), v1.RestartPolicyAlways, does...))
		}
		node.Set(all...)
		time.Sleep(hours*time.Hour + time.Minute)
		synctest.Wait()
		restarts := int32(0)
		for _, pod := range node.Pods() {
			assert.Equal(t, v1.PodRunning, pod.Status.Phase, pod.Name)
			restarts += pod.Status.ContainerStatuses[1].RestartCount
		}
		assert.InDelta(t, 11*hours, restarts, 20)
		stop()
	})
	t.Logf("%d h of %d pods in %v", hours, pods, time.Since(begun).Round(time.Millisecond))
}

// The whole life of many pods: created, run, ended by themselves or deleted,
// gone. In real time: nothing waits for anything but its turn.
func TestLivesPerSecond(t *testing.T) {
	lives, batch := scaled(200, 4000), 100
	rt := new(runtimetest.Runtime)
	node, stop := started(t, sim.NodeConfig{Runtime: rt})
	defer stop()
	begun := time.Now()
	for first := 0; first < lives; first += batch {
		var pods []*v1.Pod
		for i := range batch {
			pods = append(pods, podOf(fmt.Sprint("web-", first+i), v1.RestartPolicyAlways, fake.Behavior{}))
		}
		node.Add(pods...)
		for _, pod := range pods {
			_, err := node.Wait(t.Context(), pod.UID, func(s v1.PodStatus) bool { return s.Phase == v1.PodRunning })
			require.NoError(t, err)
			node.Delete(pod.UID, nil)
		}
		for len(node.Pods()) > 0 {
			time.Sleep(time.Millisecond)
		}
	}
	took := time.Since(begun)
	t.Logf("%d lives in %v: %.0f pods/s", lives, took.Round(time.Millisecond), float64(lives)/took.Seconds())
}

// Ten thousand pods fit into the binary of a test.
func TestTenThousandPods(t *testing.T) {
	pods := scaled(500, 10_000)
	before, goroutines := heap(), goruntime.NumGoroutine()
	begun := time.Now()
	synctest.Test(t, func(t *testing.T) {
		node, stop := started(t, sim.NodeConfig{})
		all := make([]*v1.Pod, pods)
		for i := range all {
			all[i] = podOf(fmt.Sprint("web-", i), v1.RestartPolicyAlways, fake.Behavior{})
		}
		node.Set(all...)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		for _, pod := range node.Pods() {
			require.Equal(t, v1.PodRunning, pod.Status.Phase, pod.Name)
		}
		perPod := (heap() - before) / int64(pods)
		t.Logf("%d pods: %d bytes and %.4f goroutines a pod, the spec included", pods, perPod, float64(goruntime.NumGoroutine()-goroutines)/float64(pods))
		assert.Less(t, perPod, int64(100<<10), "2 GiB would hold 20,000 of these")
		goruntime.KeepAlive(all)
		stop()
	})
	t.Logf("10 min of %d pods in %v", pods, time.Since(begun).Round(time.Millisecond))
}
