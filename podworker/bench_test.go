package podworker_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker"
)

// BenchmarkDispatch measures from a source's word to the Handler's call: what
// the Loop and the Workers add to a pod's start.
func BenchmarkDispatch(b *testing.B) {
	h := called{synced: make(chan struct{}, 1)}
	w, err := podworker.New(podworker.Config{Handler: h, Statuses: observed{}})
	if err != nil {
		b.Fatal(err)
	}
	loop, err := podworker.NewLoop(podworker.LoopConfig{Workers: w})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ran := make(chan error)
	go func() { ran <- loop.Run(ctx) }()
	pod := newPod("web", 0)
	b.ReportAllocs()
	for b.Loop() {
		loop.UpdatePods([]*v1.Pod{pod})
		<-h.synced
	}
	cancel()
	<-ran
}

// called is a Handler that tells of each Sync.
type called struct {
	silent
	synced chan struct{}
}

func (c called) Sync(context.Context, podworker.Work) (podworker.Next, error) {
	c.synced <- struct{}{}
	return podworker.Next{}, nil
}

// BenchmarkIdlePod measures what a pod that has nothing to do costs: bytes of
// heap beside its spec, and goroutines.
func BenchmarkIdlePod(b *testing.B) {
	const pods = 10_000
	for b.Loop() {
		w, err := podworker.New(podworker.Config{Handler: silent{}, Statuses: observed{}})
		if err != nil {
			b.Fatal(err)
		}
		specs := make([]*v1.Pod, pods)
		for i := range specs {
			specs[i] = newPod(fmt.Sprint("pod-", i), 0)
		}
		ctx, cancel := context.WithCancel(b.Context())
		ran := make(chan error)
		go func() { ran <- w.Run(ctx) }()
		var before, after goruntime.MemStats
		goruntime.GC()
		goruntime.ReadMemStats(&before)
		goroutines := goruntime.NumGoroutine()
		for _, pod := range specs {
			w.Update(pod, true)
		}
		for idle := false; !idle; {
			idle = true
			for _, s := range w.States() {
				idle = idle && !s.Busy && !s.Due.IsZero()
			}
		}
		goruntime.GC()
		goruntime.ReadMemStats(&after)
		b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/pods, "B/pod")
		b.ReportMetric(float64(goruntime.NumGoroutine()-goroutines)/pods, "goroutines/pod")
		cancel()
		<-ran
		goruntime.KeepAlive(specs)
	}
}

// silent is a Handler that does nothing.
type silent struct{}

func (silent) Sync(context.Context, podworker.Work) (podworker.Next, error) {
	return podworker.Next{}, nil
}
func (silent) Terminate(context.Context, podworker.Work) error { return nil }
func (silent) Cleanup(context.Context, podworker.Work) error   { return nil }
