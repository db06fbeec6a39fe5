package allocation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/runtime"
)

// Whatever pods ask for at once, in whatever order: no more is ever granted than
// there is, and a restarted agent knows it.
func TestNoMoreIsGrantedThanThereIs(t *testing.T) { // al-4, al-9
	const room, pods, rounds = 12, 6, 25
	used := func(req allocation.Request) (sum int64) {
		for _, p := range req.Others {
			sum += p.Spec.Containers[0].Resources.Requests.Cpu().Value()
		}
		return sum
	}
	var over []int64 // written under the manager's own order
	cfg := allocation.Config{Dir: t.TempDir(), Admit: func(_ context.Context, req allocation.Request) *runtime.Rejection {
		others, asks := used(req), req.Pod.Spec.Containers[0].Resources.Requests.Cpu().Value()
		if others > room {
			over = append(over, others)
		}
		if others+asks > room {
			return &runtime.Rejection{Reason: "OutOfcpu", Message: "no room"}
		}
		return nil
	}}
	m, err := allocation.Open(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg, run sync.WaitGroup
	run.Go(func() { _ = m.Run(ctx) })
	for i := range pods {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 7))
			uid, in := types.UID(fmt.Sprint("pod-", i)), false
			for range rounds {
				pod := podOf(uid, fmt.Sprintf("a: cpu=%d", 1+rnd.IntN(6)))
				switch {
				case !in:
					in = m.Admit(t.Context(), pod) == nil
				case rnd.IntN(8) == 0:
					m.Release(uid)
					in = false
				default:
					got := m.Allocate(t.Context(), pod, runs("a: cpu="+cpus(m.Allocated(pod))))
					assert.NotEmpty(t, cpus(got))
				}
				_, _ = m.ResizeState(uid), m.Retry(t.Context(), "pod_resized")
			}
		})
	}
	wg.Wait()
	cancel()
	run.Wait()
	assert.Empty(t, over)

	// What is on disk is what is in memory.
	again, err := allocation.Open(cfg)
	require.NoError(t, err)
	for i := range pods {
		pod := podOf(types.UID(fmt.Sprint("pod-", i)), "a: cpu=99")
		assert.Equal(t, cpus(m.Allocated(pod)), cpus(again.Allocated(pod)))
	}
}

// A pod that has what it asks for costs nothing.
func TestAnIdlePodAllocatesNothing(t *testing.T) {
	d := newDesk(t, allocation.Config{})
	pod := d.runningAt(t, "u", "cpu=1/2 memory=1Gi/2Gi")
	seen := runs("a: cpu=1/2 memory=1Gi/2Gi")
	d.Allocate(t.Context(), pod, seen)
	n := testing.AllocsPerRun(100, func() {
		if d.Allocate(t.Context(), pod, seen) != pod {
			t.Error("changed")
		}
	})
	assert.Zero(t, n)
}
