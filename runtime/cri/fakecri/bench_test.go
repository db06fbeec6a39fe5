package fakecri_test

import (
	"fmt"
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// pods is the number of pods of a simulated cluster on one machine.
const pods = 10_000

func newRuntime(tb testing.TB, cfg fakecri.Config) *fakecri.Runtime {
	tb.Helper()
	r, err := fakecri.New(cfg)
	require.NoError(tb, err)
	return r
}

// live creates a pod and starts its container.
func live(tb testing.TB, r *fakecri.Runtime, uid string) (sandbox, container string) {
	ctx, pod, cfg := tb.Context(), podConfig(uid), containerConfig(uid, "web")
	sandbox, err := r.RunPodSandbox(ctx, pod, "")
	require.NoError(tb, err)
	_, err = r.PullImage(ctx, cfg.Image, nil, pod)
	require.NoError(tb, err)
	container, err = r.CreateContainer(ctx, sandbox, cfg, pod)
	require.NoError(tb, err)
	require.NoError(tb, r.StartContainer(ctx, container))
	return sandbox, container
}

// die stops and removes the container and its pod.
func die(tb testing.TB, r *fakecri.Runtime, sandbox, container string) {
	ctx := tb.Context()
	require.NoError(tb, r.StopContainer(ctx, container, 30))
	require.NoError(tb, r.StopPodSandbox(ctx, sandbox))
	require.NoError(tb, r.RemoveContainer(ctx, container))
	require.NoError(tb, r.RemovePodSandbox(ctx, sandbox))
}

// BenchmarkLives runs whole pod lifecycles, from RunPodSandbox to RemovePodSandbox,
// with a number of other pods running.
func BenchmarkLives(b *testing.B) {
	for _, others := range []int{0, pods} {
		b.Run(fmt.Sprintf("among %d", others), func(b *testing.B) {
			r := newRuntime(b, fakecri.Config{})
			for i := range others {
				live(b, r, fmt.Sprint("other-", i))
			}
			b.ReportAllocs()
			for b.Loop() {
				sandbox, container := live(b, r, "a")
				die(b, r, sandbox, container)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}

// BenchmarkPod measures the calls to inspect one pod among many, as a kubelet does
// after an event.
func BenchmarkPod(b *testing.B) {
	r := newRuntime(b, fakecri.Config{})
	for i := range pods {
		live(b, r, fmt.Sprint(i))
	}
	labels := map[string]string{"io.kubernetes.pod.uid": "77"}
	b.ReportAllocs()
	for b.Loop() {
		sandboxes, err := r.ListPodSandbox(b.Context(), &runtimeapi.PodSandboxFilter{LabelSelector: labels})
		require.NoError(b, err)
		containers, err := r.ListContainers(b.Context(), &runtimeapi.ContainerFilter{LabelSelector: labels})
		require.NoError(b, err)
		_, err = r.PodSandboxStatus(b.Context(), sandboxes[0].Id, false)
		require.NoError(b, err)
		_, err = r.ContainerStatus(b.Context(), containers[0].Id, false)
		require.NoError(b, err)
	}
}

// BenchmarkRelist lists all sandboxes and containers.
func BenchmarkRelist(b *testing.B) {
	for _, n := range []int{110, pods} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRuntime(b, fakecri.Config{})
			for i := range n {
				live(b, r, fmt.Sprint(i))
			}
			b.ReportAllocs()
			for b.Loop() {
				sandboxes, err := r.ListPodSandbox(b.Context(), nil)
				require.NoError(b, err)
				containers, err := r.ListContainers(b.Context(), nil)
				require.NoError(b, err)
				require.Len(b, sandboxes, n)
				require.Len(b, containers, n)
			}
		})
	}
}

// BenchmarkMemory measures the memory usage of a pod with one running container.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		before := heap()
		r := newRuntime(b, fakecri.Config{})
		for i := range pods {
			live(b, r, fmt.Sprint(i))
		}
		b.ReportMetric(float64(heap()-before)/pods, "bytes/pod")
		goruntime.KeepAlive(r)
	}
}

func heap() uint64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The package must support many concurrent pods: an idle pod has no goroutine and
// uses little memory.
func TestManyPodsAreLight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, routines := heap(), goruntime.NumGoroutine()
		r := newRuntime(t, does(fake.Behavior{Exit: &fake.Exit{After: time.Hour}}))
		for i := range pods {
			live(t, r, fmt.Sprint(i))
		}
		synctest.Wait()
		require.LessOrEqual(t, goruntime.NumGoroutine(), routines)
		require.Less(t, (heap()-before)/pods, uint64(20<<10), "bytes per pod")
		time.Sleep(time.Hour + time.Second)
		for _, c := range r.Containers("") {
			require.Equal(t, fakecri.Exited, c.State)
		}
	})
}
