package podworker_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
)

// BenchmarkDispatch measures from a source's update to the Handler's call: the part of
// the Loop and the Workers in a pod's start.
func BenchmarkDispatch(b *testing.B) {
	h := called{synced: make(chan struct{}, 1)}
	w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}})
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

// called is a Handler that reports each Sync to a channel.
type called struct {
	silent
	synced chan struct{}
}

func (c called) Sync(context.Context, podworker.SyncRequest) (podworker.SyncResult, error) {
	c.synced <- struct{}{}
	return podworker.SyncResult{}, nil
}

// A crowd is pods with workers: Workers, or the obvious design.
type crowd interface {
	Update(pod *v1.Pod, create bool)
	Run(ctx context.Context) error
}

// obvious has a goroutine, a channel with room for one update and a timer for each
// pod: the obvious design, and the kubelet's.
type obvious struct {
	handler podworker.Handler

	mu   sync.Mutex
	ctx  context.Context // of Run
	wg   sync.WaitGroup
	pods map[types.UID]chan *v1.Pod
}

func (o *obvious) Run(ctx context.Context) error {
	<-ctx.Done()
	o.wg.Wait()
	return nil
}

func (o *obvious) Update(pod *v1.Pod, _ bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	updates, ok := o.pods[pod.UID]
	if !ok {
		updates = make(chan *v1.Pod, 1)
		o.pods[pod.UID] = updates
		o.wg.Go(func() { o.live(updates) })
	}
	select {
	case <-updates: // a newer one takes its place
	default:
	}
	updates <- pod
}

func (o *obvious) live(updates chan *v1.Pod) {
	resync := time.NewTimer(time.Minute)
	defer resync.Stop()
	var pod *v1.Pod
	first := true
	for {
		select {
		case <-o.ctx.Done():
			return
		case pod = <-updates:
		case <-resync.C:
		}
		ctx, cancel := context.WithCancel(o.ctx) // a deletion would end the call
		status, _ := observed{}.GetNewerThan(ctx, pod.UID, time.Time{})
		_, _ = o.handler.Sync(ctx, podworker.SyncRequest{UID: pod.UID, Pod: pod, Status: status, First: first})
		cancel()
		first = false
		resync.Reset(time.Minute)
	}
}

// counting is a Handler that counts its Syncs.
type counting struct {
	silent
	n *atomic.Int64
}

func (c counting) Sync(context.Context, podworker.SyncRequest) (podworker.SyncResult, error) {
	c.n.Add(1)
	return podworker.SyncResult{}, nil
}

// crowds runs a benchmark over both kinds of workers.
func crowds(b *testing.B, bench func(b *testing.B, start func() (c crowd, synced *atomic.Int64, stop func()))) {
	for _, kind := range []string{"workers", "obvious"} {
		b.Run(kind, func(b *testing.B) {
			bench(b, func() (c crowd, synced *atomic.Int64, stop func()) {
				ctx, cancel := context.WithCancel(b.Context())
				synced = new(atomic.Int64)
				h := counting{n: synced}
				if kind == "obvious" {
					c = &obvious{handler: h, ctx: ctx, pods: map[types.UID]chan *v1.Pod{}}
				} else {
					w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}})
					if err != nil {
						b.Fatal(err)
					}
					c = w
				}
				ran := make(chan error)
				go func() { ran <- c.Run(ctx) }()
				return c, synced, func() {
					cancel()
					<-ran
				}
			})
		})
	}
}

func newPods(n int) []*v1.Pod {
	pods := make([]*v1.Pod, n)
	for i := range pods {
		pods[i] = newPod(fmt.Sprint("pod-", i), 0)
	}
	return pods
}

// await waits for so many Syncs.
func await(synced *atomic.Int64, n int64) {
	for synced.Load() < n {
		time.Sleep(100 * time.Microsecond)
	}
}

// BenchmarkIdlePod measures the cost of an idle pod: bytes of heap and of stacks in
// addition to its spec, and goroutines; of 10,000.
func BenchmarkIdlePod(b *testing.B) {
	const n = 10_000
	crowds(b, func(b *testing.B, start func() (crowd, *atomic.Int64, func())) {
		for b.Loop() {
			pods := newPods(n)
			c, synced, stop := start()
			var before, after goruntime.MemStats
			goruntime.GC()
			goruntime.ReadMemStats(&before)
			goroutines := goruntime.NumGoroutine()
			for _, pod := range pods {
				c.Update(pod, true)
			}
			await(synced, n)
			time.Sleep(20 * time.Millisecond) // the last ones become idle
			goruntime.GC()
			goruntime.ReadMemStats(&after)
			b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/n, "heap-B/pod")
			b.ReportMetric(max(0, float64(int64(after.StackInuse)-int64(before.StackInuse))/n), "stack-B/pod")
			b.ReportMetric(float64(goruntime.NumGoroutine()-goroutines)/n, "goroutines/pod")
			stop()
			goruntime.KeepAlive(pods)
		}
	})
}

// BenchmarkUpdates measures the rate at which 10,000 pods receive an update each, and
// are synced.
func BenchmarkUpdates(b *testing.B) {
	const n = 10_000
	crowds(b, func(b *testing.B, start func() (crowd, *atomic.Int64, func())) {
		pods := newPods(n)
		c, synced, stop := start()
		for _, pod := range pods {
			c.Update(pod, true)
		}
		await(synced, n)
		rounds := int64(1)
		for b.Loop() {
			for _, pod := range pods {
				c.Update(pod, false)
			}
			rounds++
			await(synced, n*rounds)
		}
		b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "updates/s")
		stop()
	})
}

// silent is a Handler that does nothing.
type silent struct{}

func (silent) Sync(context.Context, podworker.SyncRequest) (podworker.SyncResult, error) {
	return podworker.SyncResult{}, nil
}
func (silent) Terminate(context.Context, podworker.SyncRequest) error { return nil }
func (silent) Cleanup(context.Context, podworker.SyncRequest) error   { return nil }
