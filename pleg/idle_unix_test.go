//go:build unix

package pleg_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

var idleFor = flag.Duration("idle", 10*time.Second, "how long BenchmarkIdleNode and BenchmarkIdleNodeOverASocket watch a node on which nothing happens")

// onlyLister hides that a runtime has hints.
type onlyLister struct{ runtime.Lister }

// BenchmarkIdleNode measures the CPU time per minute of watching an idle node: with
// trusted hints, so that there is a list every five minutes, and without, so that
// there is one every second. The lists of the in-memory runtime are part of it.
func BenchmarkIdleNode(b *testing.B) {
	for _, pods := range []int{110, 250, 1000} {
		for _, hints := range []bool{false, true} {
			b.Run(fmt.Sprintf("pods=%d/hints=%t", pods, hints), func(b *testing.B) {
				rt := new(runtimetest.Runtime)
				for i := range pods {
					for c := range 3 {
						rt.Start(busyUID(i), fmt.Sprint("c", c))
					}
				}
				var lister runtime.Lister = rt
				if !hints {
					lister = onlyLister{rt}
				}
				g, err := pleg.New(pleg.Config{Runtime: lister})
				require.NoError(b, err)
				ctx, stop := context.WithCancel(b.Context())
				var wg sync.WaitGroup
				wg.Go(func() { _ = g.Run(ctx) })
				defer wg.Wait()
				defer stop()
				time.Sleep(2 * time.Second)
				if hints {
					pleg.Trust(g)
				}
				var cost, watched time.Duration
				for b.Loop() {
					before, began := cpuTime(b), time.Now()
					time.Sleep(*idleFor)
					cost += cpuTime(b) - before
					watched += time.Since(began)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(cost)/watched.Minutes(), "cpu-ns/min")
			})
		}
	}
}

// cpuTime returns the CPU time used by this process.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
