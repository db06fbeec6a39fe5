package status_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"sync"
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

// The cost of a report without changes.
func BenchmarkReportOfNothingNew(b *testing.B) {
	m, err := status.New(status.Config{Sink: status.Tee()})
	if err != nil {
		b.Fatal(err)
	}
	pod, observed := podOf(v1.RestartPolicyAlways, "a"), seen(runningC("a", 0))
	b.ReportAllocs()
	for b.Loop() {
		m.Report(pod, observed, nil, runtime.Termination{})
	}
}

// The memory that a manager uses per idle pod, without the pod object.
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
			m.Report(pod, observed, nil, runtime.Termination{})
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

// The status of a pod of ten containers, two of which have restarted, with probes and
// a readiness gate.
func BenchmarkComputeTenContainers(b *testing.B) {
	var names []string
	var instances []runtime.ContainerStatus
	probed := map[string]runtime.ProbeStatus{}
	for i := range 10 {
		name := fmt.Sprint("c", i)
		names = append(names, name)
		instances = append(instances, runningC(name, int32(i%5/4)))
		if i%5 == 4 {
			instances = append(instances, exitedC(name, 0, 1))
		}
		probed[name] = runtime.ProbeStatus{Startup: runtime.ProbeSuccess, Readiness: runtime.ProbeSuccess}
	}
	f := status.Facts{
		Pod: podOf(v1.RestartPolicyAlways, names...), Now: t0, HostIPs: []string{"192.168.0.1"},
		Observed: seen(instances...), Probes: probed,
	}
	f.Pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "lb"}}
	f.Previous = status.Compute(f)
	b.ReportAllocs()
	for b.Loop() {
		status.Compute(f)
	}
}

// 10,000 changes of 100 pods to a sink in memory, in order per pod: the cost of a
// change from the report to the sink.
func BenchmarkTenThousandChanges(b *testing.B) {
	const pods, changes = 100, 100
	running, exited := make([]*runtime.PodStatus, changes), make([]*runtime.PodStatus, changes)
	for i := range changes {
		running[i], exited[i] = seen(runningC("a", int32(i))), seen(exitedC("a", int32(i), 1))
	}
	b.ReportAllocs()
	for b.Loop() {
		last := make(map[string]int32, pods)
		var mu sync.Mutex
		delivered := 0
		m, err := status.New(status.Config{Sink: sinkFunc(func(_ context.Context, pod *v1.Pod, s v1.PodStatus) error {
			mu.Lock()
			defer mu.Unlock()
			n := s.ContainerStatuses[0].RestartCount
			if n < last[pod.Name] {
				b.Errorf("%s goes back to %d", pod.Name, n)
			}
			last[pod.Name] = n
			delivered++
			return nil
		})})
		if err != nil {
			b.Fatal(err)
		}
		all := make([]*v1.Pod, pods)
		for i := range all {
			all[i] = named(podOf(v1.RestartPolicyAlways, "a"), fmt.Sprint("web", i))
		}
		for n := range changes / 2 {
			for _, pod := range all {
				m.Report(pod, running[n], nil, runtime.Termination{})
			}
			if err := m.Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
			for _, pod := range all {
				m.Report(pod, exited[n], nil, runtime.Termination{})
			}
			if err := m.Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		if delivered != pods*changes {
			b.Fatalf("%d of %d were delivered", delivered, pods*changes)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(pods*changes), "ns/change")
}
