package pleg_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
)

// A still node answers with one of two equal lists in turn, so that what is
// measured is the Generator, and no string is compared with itself.
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
		uid := types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
		n.start(uid, fmt.Sprintf("sb%062d", i))
		for c := range 3 {
			n.start(uid, fmt.Sprintf("containerd://%063d%d", i, c))
		}
	}
	return n
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

// The node of L-1, twice as large: the time is that of the inspections divided
// by their number at a time, not their sum (lq-3: the kubelet takes 50 s).
func TestRelistOf1000ChangedPodsIsBoundedByParallelism(t *testing.T) {
	for parallel, want := range map[int]time.Duration{1: 50 * time.Second, 8: 6250 * time.Millisecond, 64: 800 * time.Millisecond} {
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
			assert.Equal(t, parallel, n.peak)
		})
	}
}
