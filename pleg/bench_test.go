package pleg_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A still node returns two equal lists alternately, so that the Generator is measured,
// and no string is compared with itself.
type still struct {
	lists [2][]*runtime.Pod
	turn  int
	node  *node
}

func (s *still) Pods(context.Context) ([]*runtime.Pod, error) {
	s.turn ^= 1
	return s.lists[s.turn], nil
}

func (s *still) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	return s.node.PodStatus(ctx, uid)
}

// busyNode has pods with a sandbox and three containers each, whose IDs are as
// long as real ones.
func busyNode(pods int) *node {
	n := newNode()
	for i := range pods {
		uid := busyUID(i)
		n.start(uid, fmt.Sprintf("sb%062d", i))
		for c := range 3 {
			n.start(uid, busyContainer(i, c))
		}
	}
	return n
}

func busyUID(pod int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", pod)) }
func busyContainer(pod, container int) string {
	return fmt.Sprintf("containerd://%063d%d", pod, container)
}

func still1000(b *testing.B) *still {
	s := &still{node: busyNode(1000)}
	for i := range s.lists {
		list, err := busyNode(1000).Pods(b.Context())
		require.NoError(b, err)
		s.lists[i] = list
	}
	return s
}

func BenchmarkRelist1000PodsUnchanged(b *testing.B) {
	g, err := pleg.New(pleg.Config{Runtime: still1000(b)})
	require.NoError(b, err)
	require.NoError(b, g.Relist(b.Context()))
	b.ReportAllocs()
	for b.Loop() {
		if err := g.Relist(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// A serial looker does the same work as the kubelet does: one pod after the other
// (pleg-15 … pleg-21).
type serial struct {
	rt     runtime.Lister
	handle func(pleg.Event)
	seen   map[types.UID]*runtime.Pod
	cache  map[types.UID]*runtime.PodStatus
}

func (s *serial) relist(ctx context.Context) error {
	pods, err := s.rt.Pods(ctx)
	if err != nil {
		return err
	}
	now := make(map[types.UID]*runtime.Pod, len(pods))
	for _, p := range pods {
		now[p.UID] = p
	}
	for uid := range s.seen {
		if now[uid] == nil {
			now[uid] = nil // gone, and to be reported
		}
	}
	for uid, p := range now {
		events := slices.Collect(pleg.Diff(s.seen[uid], p))
		if len(events) == 0 {
			continue
		}
		if p == nil {
			delete(s.cache, uid)
			delete(s.seen, uid)
		} else {
			status, err := s.rt.PodStatus(ctx, uid)
			if err != nil {
				continue
			}
			s.cache[uid], s.seen[uid] = status, p
		}
		for _, e := range events {
			s.handle(e)
		}
	}
	return nil
}

// BenchmarkRelist1000 measures one relist of 1,000 pods, some of them changed, with a
// Generator and with the serial version, in real time. Both find the same events.
func BenchmarkRelist1000(b *testing.B) {
	for _, takes := range []time.Duration{0, 50 * time.Millisecond} {
		for _, changed := range []int{0, 10, 1000} {
			b.Run(fmt.Sprintf("inspect=%v/changed=%d", takes, changed), func(b *testing.B) {
				n, events := busyNode(1000), 0
				count := func(pleg.Event) { events++ }
				g, err := pleg.New(pleg.Config{Runtime: n, Handle: count})
				require.NoError(b, err)
				s := &serial{n, count, map[types.UID]*runtime.Pod{}, map[types.UID]*runtime.PodStatus{}}
				require.NoError(b, g.Relist(b.Context()))
				require.NoError(b, s.relist(b.Context()))
				n.do(func() { n.inspectTake[""] = takes })
				var here, serially time.Duration
				turns := 0
				for b.Loop() {
					turns++
					for i := range changed {
						if turns%2 == 1 {
							n.exit(busyUID(i), busyContainer(i, 0))
						} else {
							n.start(busyUID(i), busyContainer(i, 0))
						}
					}
					events = 0
					began := time.Now()
					require.NoError(b, g.Relist(b.Context()))
					here += time.Since(began)
					require.Equal(b, changed, events)
					began = time.Now()
					require.NoError(b, s.relist(b.Context()))
					serially += time.Since(began)
					require.Equal(b, 2*changed, events)
				}
				ms := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(turns) }
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(ms(here), "ms")
				b.ReportMetric(ms(serially), "serial-ms")
				b.ReportMetric(ms(serially)/ms(here), "×faster")
			})
		}
	}
}

// BenchmarkExitToHandler measures the latency from a container's exit to Handle, with
// hints, on a node of 110 pods.
func BenchmarkExitToHandler(b *testing.B) {
	rt := new(runtimetest.Runtime)
	for i := range 110 {
		rt.Start(busyUID(i), "c0")
	}
	died := make(chan types.UID, 1)
	g, err := pleg.New(pleg.Config{Runtime: rt, Handle: func(e pleg.Event) {
		if e.Type == pleg.ContainerDied && e.UID == "exits" {
			died <- e.UID
		}
	}})
	require.NoError(b, err)
	ctx, stop := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = g.Run(ctx) })
	defer wg.Wait()
	defer stop()
	var took []time.Duration
	for b.Loop() {
		rt.Start("exits", "c0")
		_, err := g.GetNewerThan(ctx, "exits", time.Now())
		require.NoError(b, err)
		began := time.Now()
		require.NoError(b, rt.Exit("exits", "c0", 0))
		<-died
		took = append(took, time.Since(began))
		rt.Remove("exits")
		_, err = g.GetNewerThan(ctx, "exits", time.Now())
		require.NoError(b, err)
		select {
		case <-died: // of the sandbox
		case <-time.After(10 * time.Second):
		}
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
}

func BenchmarkDiff(b *testing.B) {
	old := pod("c3:running", "c2:running", "c1:running", "s:ready")
	new := pod("c4:running", "c3:exited", "c2:running", "c1:running", "s:ready")
	for name, p := range map[string]*runtime.Pod{"unchanged": pod("c3:running", "c2:running", "c1:running", "s:ready"), "restarted": new} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for range pleg.Diff(old, p) {
				}
			}
		})
	}
}

// A node of 1,000 pods, in virtual time: a relist takes the sum of the inspections
// divided by their parallelism, not their sum (lq-3: the kubelet takes 50 s).
func TestRelistOf1000ChangedPodsIsBoundedByParallelism(t *testing.T) {
	const serially = 50 * time.Second
	for parallel, want := range map[int]time.Duration{0: 1600 * time.Millisecond, 1: serially, 8: 6250 * time.Millisecond, 64: 800 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			n := busyNode(1000)
			n.inspectTake[""] = 50 * time.Millisecond
			l := new(listener)
			g := newGenerator(t, n, l, pleg.Config{Parallel: parallel})
			began := time.Now()
			require.NoError(t, g.Relist(t.Context()))
			took := time.Since(began)
			t.Logf("1000 pods, 50 ms each, %d at a time: %v", parallel, took)
			assert.Equal(t, want, took)
			assert.Len(t, l.take(), 4000)
			if parallel > 0 {
				assert.Equal(t, parallel, n.peak)
			} else {
				assert.Less(t, took, serially/20, "the default")
			}
		})
	}
}

func TestRelistOf500ChangedPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := busyNode(500)
		n.inspectTake[""] = 20 * time.Millisecond
		began := time.Now()
		require.NoError(t, newGenerator(t, n, nil, pleg.Config{Parallel: 8}).Relist(t.Context()))
		assert.Less(t, time.Since(began), 2*time.Second)
	})
}

// The serial version that is measured against finds the same events as a Generator.
func TestTheSerialVersionFindsTheSame(t *testing.T) {
	n, here, there := newNode(), new(listener), new(listener)
	g := newGenerator(t, n, here, pleg.Config{})
	s := &serial{n, there.handle, map[types.UID]*runtime.Pod{}, map[types.UID]*runtime.PodStatus{}}
	for _, happen := range []func(){
		func() { n.start("u", "sb"); n.start("u", "c"); n.start("v", "c") },
		func() {},
		func() { n.exit("u", "c"); n.remove("v", "c") },
		func() { n.remove("u", "c"); n.remove("u", "sb") },
	} {
		happen()
		require.NoError(t, g.Relist(t.Context()))
		require.NoError(t, s.relist(t.Context()))
		assert.ElementsMatch(t, there.take(), here.take())
	}
	assert.Empty(t, s.cache)
}

// BenchmarkRelist measures one relist of 1,000 pods of three containers without
// changes, and the part of it that is not the runtime's list.
func BenchmarkRelist(b *testing.B) {
	rt := new(runtimetest.Runtime)
	for i := range 1000 {
		for c := range 3 {
			rt.Start(types.UID(fmt.Sprint("uid-", i)), fmt.Sprint("c", c))
		}
	}
	changes, err := pleg.New(pleg.Config{Runtime: rt})
	if err != nil {
		b.Fatal(err)
	}
	if err := changes.Relist(b.Context()); err != nil {
		b.Fatal(err)
	}
	var listing, relisting time.Duration
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		begun := time.Now()
		if _, err := rt.Pods(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		listed := time.Now()
		if err := changes.Relist(b.Context()); err != nil {
			b.Fatal(err)
		}
		listing += listed.Sub(begun)
		relisting += time.Since(listed)
	}
	b.ReportMetric(float64(relisting)/float64(listing), "×list")
}
