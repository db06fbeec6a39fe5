package status_test

import (
	"fmt"
	goruntime "runtime"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

func BenchmarkCompute(b *testing.B) {
	f := status.Facts{
		Pod: withInit(podOf(v1.RestartPolicyAlways, "a", "b"), "i"), Now: t0, HostIPs: []string{"192.168.0.1"},
		Observed: seen(runningC("a", 1), runningC("b", 0), exitedC("a", 0, 1), exitedC("i", 0, 0)),
	}
	f.Previous = status.Compute(f)
	b.ReportAllocs()
	for b.Loop() {
		status.Compute(f)
	}
}

// What one report costs when nothing is new.
func BenchmarkReportOfNothingNew(b *testing.B) {
	m, err := status.New(status.Config{Sink: status.Tee()})
	if err != nil {
		b.Fatal(err)
	}
	pod, observed := podOf(v1.RestartPolicyAlways, "a"), seen(runningC("a", 0))
	b.ReportAllocs()
	for b.Loop() {
		m.Report(pod, observed, nil, runtime.Ending{})
	}
}

// What a manager holds per pod while nothing happens, the pod object not
// counted.
func BenchmarkIdlePod(b *testing.B) {
	const n = 1000
	pods := make([]*v1.Pod, n)
	for i := range pods {
		pods[i] = named(podOf(v1.RestartPolicyAlways, "a"), fmt.Sprint("web", i))
	}
	observed := seen(runningC("a", 0))
	for b.Loop() {
		before := heap()
		m, err := status.New(status.Config{Sink: status.Tee()})
		if err != nil {
			b.Fatal(err)
		}
		for _, pod := range pods {
			m.Report(pod, observed, nil, runtime.Ending{})
		}
		if err := m.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(heap()-before)/n, "B/pod")
		b.ReportMetric(float64(goruntime.NumGoroutine()), "goroutines")
		goruntime.KeepAlive(m)
	}
}

func heap() int64 {
	goruntime.GC()
	goruntime.GC()
	var s goruntime.MemStats
	goruntime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
