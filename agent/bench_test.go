package agent_test

import (
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
)

// BenchmarkIdlePod measures the cost of an idle running pod to an agent, from source
// to sink: goroutines, and heap in addition to the source's spec. The copies that the
// sink and the in-memory runtime keep, which a real agent has in other processes,
// count as well.
func BenchmarkIdlePod(b *testing.B) {
	const pods = 1000
	for b.Loop() {
		rt, source := newNode(), new(podsource.Memory)
		specs := make([]*v1.Pod, pods)
		for i := range specs {
			specs[i] = newTestPod(fmt.Sprint("web-", i), v1.RestartPolicyAlways, "serves")
		}
		source.Set()
		spine := newSpine(b, rt, source, podworker.Hooks{})
		heap := func() int64 {
			var m goruntime.MemStats
			goruntime.GC()
			goruntime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before, goroutines := heap(), goruntime.NumGoroutine()
		source.Set(specs...)
		for i := range specs {
			running := func(s v1.PodStatus) bool { return s.Phase == v1.PodRunning }
			if _, err := spine.sink.Wait(b.Context(), specs[i].UID, running); err != nil {
				b.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second) // pending updates have arrived
		b.ReportMetric(float64(heap()-before)/pods, "B/pod")
		b.ReportMetric(float64(goruntime.NumGoroutine()-goroutines)/pods, "goroutines/pod")
		require.NoError(b, spine.stop())
		goruntime.KeepAlive(specs)
	}
}

// BenchmarkSourceToSync measures from a source's set to the end of the SyncPod
// that starts the pod, over a runtime in memory.
func BenchmarkSourceToSync(b *testing.B) {
	synced := make(chan types.UID, 1024)
	rt, source := newNode(), new(podsource.Memory)
	source.Set()
	spine := newSpine(b, rt, source, podworker.Hooks{Synced: func(i podworker.SyncInfo) {
		if i.First {
			synced <- i.UID
		}
	}})
	n := 0
	for b.Loop() {
		n++
		pod := newTestPod(fmt.Sprint("web-", n), v1.RestartPolicyAlways, "serves")
		source.Set(pod)
		for <-synced != pod.UID {
		}
	}
	require.NoError(b, spine.stop())
}

// BenchmarkExitToStatus measures from a container's exit to the status in the
// sink, with the runtime's hints. The kubelet's generic PLEG needs a second on
// average for the first half of that way.
func BenchmarkExitToStatus(b *testing.B) {
	rt, source := newNode(), new(podsource.Memory)
	source.Set()
	spine := newSpine(b, rt, source, podworker.Hooks{})
	n := 0
	var total time.Duration
	for b.Loop() {
		n++
		pod := newTestPod(fmt.Sprint("job-", n), v1.RestartPolicyNever, "serves")
		source.Set(pod)
		wait := func(phase v1.PodPhase) {
			if _, err := spine.sink.Wait(b.Context(), pod.UID, func(s v1.PodStatus) bool { return s.Phase == phase }); err != nil {
				b.Fatal(err)
			}
		}
		wait(v1.PodRunning)
		begun := time.Now()
		if err := rt.Exit(pod.UID, "c0", 0); err != nil {
			b.Fatal(err)
		}
		wait(v1.PodSucceeded)
		total += time.Since(begun)
	}
	b.ReportMetric(float64(total.Microseconds())/float64(n), "µs/exit")
	require.NoError(b, spine.stop())
}
