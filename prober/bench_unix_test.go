//go:build unix

package prober_test

import (
	"context"
	"flag"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// workers is the number of probes in the benchmarks, period their period: 1,000 runs a
// second.
const (
	workers = 10_000
	period  = 10 * time.Second
)

var periods = flag.Int("periods", 1, "how many periods BenchmarkWorkers watches its probes, after a first one")

// still is a runtime in which nothing ever changes.
type still map[types.UID]*runtime.PodStatus

func (s still) Get(uid types.UID) (*runtime.PodStatus, error) { return s[uid], nil }

// world returns pods with one probe each, and a runtime that has run them for an
// hour.
func world() ([]*v1.Pod, still) {
	pods, seen := make([]*v1.Pod, workers), make(still, workers)
	for i := range pods {
		uid := types.UID(fmt.Sprintf("uid-%d", i))
		pods[i] = pod(uid, container("web", "L", nil))
		seen[uid] = &runtime.PodStatus{UID: uid, IPs: []string{"10.0.0.1"}, Containers: []runtime.ContainerStatus{{
			ID: fmt.Sprintf("containerd://%d", i), Name: "web", State: runtime.ContainerRunning, StartedAt: time.Now().Add(-time.Hour),
		}}}
	}
	return pods, seen
}

// noop is a handler that returns at once.
var noop = handler(func(context.Context, prober.Target) (prober.Outcome, error) {
	return prober.Outcome{Result: runtime.ProbeSuccess}, nil
})

// BenchmarkWorkers measures 10,000 probes with a period of 10 s in real time: with
// this package, and with a goroutine and a ticker for each, as in the kubelet.
func BenchmarkWorkers(b *testing.B) {
	b.Run("heap", func(b *testing.B) {
		pods, seen := world()
		m := measure(b)
		probes, err := prober.New(prober.Config{Handlers: prober.Handlers{TCPSocket: noop}, Status: seen.Get, Hooks: prober.Hooks{
			Ran: func(i prober.AttemptInfo) { m.ran(i.Lag) },
		}})
		require.NoError(b, err)
		for _, p := range pods {
			probes.Add(p)
		}
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error, 1)
		go func() { done <- probes.Run(ctx) }()
		m.watch()
		cancel()
		require.NoError(b, <-done)
		goruntime.KeepAlive(pods)
	})
	b.Run("goroutines", func(b *testing.B) {
		pods, seen := world()
		m := measure(b)
		ctx, cancel := context.WithCancel(b.Context())
		var all sync.WaitGroup
		results := new(sync.Map)
		for i, p := range pods {
			all.Go(func() {
				spread := time.NewTimer(time.Duration(i) * period / workers)
				defer spread.Stop()
				select {
				case <-ctx.Done():
					return
				case <-spread.C:
				}
				ticker := time.NewTicker(period)
				defer ticker.Stop()
				due, alike := time.Now(), 0
				for {
					m.ran(time.Since(due))
					status, _ := seen.Get(p.UID)
					c := status.Container("web")
					o, err := noop.Probe(ctx, prober.Target{Pod: p, Container: &p.Spec.Containers[0], ContainerID: c.ID, PodIP: status.IPs[0]})
					if alike++; err == nil && o.Result == runtime.ProbeSuccess && alike == 1 {
						results.Store(c.ID, o.Result)
					}
					select {
					case <-ctx.Done():
						return
					case due = <-ticker.C:
					}
				}
			})
		}
		m.watch()
		cancel()
		all.Wait()
		goruntime.KeepAlive(pods)
	})
}

// A measurement is the resources used during a benchmark.
type measurement struct {
	b      *testing.B
	memory goruntime.MemStats
	mu     sync.Mutex
	lags   []time.Duration
	on     atomic.Bool
}

func measure(b *testing.B) *measurement {
	m := &measurement{b: b, lags: make([]time.Duration, 0, 4*workers)}
	goruntime.GC()
	goruntime.ReadMemStats(&m.memory)
	return m
}

func (m *measurement) ran(lag time.Duration) {
	if m.on.Load() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.lags = append(m.lags, lag)
	}
}

// watch lets one period pass, in which each probe has its first run, and measures
// those that follow.
func (m *measurement) watch() {
	time.Sleep(period)
	var after goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&after)
	most := 0
	cpu := processorTime()
	m.on.Store(true)
	for range 10 * *periods {
		time.Sleep(period / 10)
		most = max(most, goruntime.NumGoroutine())
	}
	m.on.Store(false)
	cpu = processorTime() - cpu

	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.lags)
	b := m.b
	b.ReportMetric(float64(most), "goroutines")
	b.ReportMetric(float64(after.HeapAlloc-m.memory.HeapAlloc)/workers, "heap-B/worker")
	b.ReportMetric(float64(int64(after.StackInuse)-int64(m.memory.StackInuse))/workers, "stack-B/worker")
	b.ReportMetric(float64(cpu.Microseconds())/float64(len(m.lags)), "cpu-µs/probe")
	b.ReportMetric(float64(cpu.Milliseconds())/(float64(len(m.lags))/1000), "cpu-ms/1000probes")
	b.ReportMetric(float64(m.lags[len(m.lags)/2].Microseconds()), "lag-p50-µs")
	b.ReportMetric(float64(m.lags[len(m.lags)*99/100].Microseconds()), "lag-p99-µs")
	b.ReportMetric(float64(len(m.lags))/float64(10**periods), "probes/s")
	b.ReportMetric(0, "ns/op")
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkStep measures a worker that checks its container, and processes a result.
func BenchmarkStep(b *testing.B) {
	b.ReportAllocs()
	s, _ := prober.State{}.Observe(prober.Liveness, prober.Saw("1"))
	timing := prober.TimingOf(&v1.Probe{})
	for b.Loop() {
		s, _ = s.Observe(prober.Liveness, prober.Saw("1"))
		s, _ = s.Evaluate(prober.Liveness, timing, "1", true)
	}
}
