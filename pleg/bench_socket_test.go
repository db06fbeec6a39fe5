//go:build unix

package pleg_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
)

// overSocket returns the pod engine over a fake CRI runtime that is reached as a
// real one is, by gRPC over a socket, and that runs so many pods of three
// containers.
func overSocket(b *testing.B, pods int) (*cri.Runtime, *fakecri.Runtime) {
	dir, err := os.MkdirTemp("", "cri") // the path of a socket is short
	require.NoError(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	fake, err := fakecri.New(fakecri.Config{})
	require.NoError(b, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	listener, err := serve.Listen(ctx, filepath.Join(dir, "cri.sock"))
	require.NoError(b, err)
	server, err := serve.New(serve.Config{Listener: listener, Runtime: fake, Images: fake, Streams: fake})
	require.NoError(b, err)
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	b.Cleanup(func() { stop(); <-ended })
	client, err := remote.Dial(ctx, listener.Addr().String(), remote.Config{})
	require.NoError(b, err)
	b.Cleanup(func() { _ = client.Close(ctx) })
	rt, err := cri.New(cri.Config{
		Name: client.Name, Runtime: client.Runtime, Images: client.Images, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"},
	})
	require.NoError(b, err)
	var group errgroup.Group
	group.SetLimit(16)
	for i := range pods {
		group.Go(func() error {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod-", i), Namespace: "default", UID: types.UID(fmt.Sprint("uid-pod-", i))}}
			pod.Spec = v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "c0", Image: "a"}, {Name: "c1", Image: "b"}, {Name: "c2", Image: "c"}}}
			return startOn(b.Context(), rt, manifest.Default(pod))
		})
	}
	require.NoError(b, group.Wait())
	return rt, fake
}

// startOn syncs the pod until all its containers run.
func startOn(ctx context.Context, rt runtime.Runtime, pod *v1.Pod) error {
	for range 10 {
		res, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
		if err != nil || len(res.Actions) == 0 {
			return err
		}
	}
	return fmt.Errorf("pod %s does not come to rest", pod.Name)
}

// BenchmarkExitToHandlerOverASocket measures the latency from a container's exit in a
// CRI runtime to pleg's Handle, with hints, on a node of 110 pods: 330 exits, one
// after the other.
func BenchmarkExitToHandlerOverASocket(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		const pods = 110
		rt, fake := overSocket(b, pods)
		started, died := make(chan struct{}, 8*pods), make(chan types.UID, 8*pods)
		g, err := pleg.New(pleg.Config{Runtime: rt, Handle: func(e pleg.Event) {
			switch e.Type {
			case pleg.ContainerStarted:
				started <- struct{}{}
			case pleg.ContainerDied:
				died <- e.UID
			}
		}})
		require.NoError(b, err)
		ctx, stop := context.WithCancel(b.Context())
		done := make(chan error, 1)
		go func() { done <- g.Run(ctx) }()
		for range 4 * pods {
			<-started
		}
		for c := range 3 {
			for i := range pods {
				uid := types.UID(fmt.Sprint("uid-pod-", i))
				began := time.Now()
				require.NoError(b, fake.Exit(string(uid), fmt.Sprint("c", c), 0))
				require.Equal(b, uid, <-died)
				took = append(took, time.Since(began))
			}
		}
		stop()
		require.NoError(b, <-done)
	}
	slices.Sort(took)
	ms := func(i int) float64 { return took[i].Seconds() * 1000 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(len(took)/2), "p50-ms")
	b.ReportMetric(ms(len(took)*99/100), "p99-ms")
	b.ReportMetric(ms(len(took)-1), "max-ms")
}

// BenchmarkIdleNodeOverASocket measures the CPU time per minute of watching an idle
// node, including the work of the CRI runtime, which runs in this process: with a list
// every second, as without hints, and with one every five minutes, as with trusted
// hints.
func BenchmarkIdleNodeOverASocket(b *testing.B) {
	for _, pods := range []int{110, 1000} {
		for _, period := range []time.Duration{time.Second, 5 * time.Minute} {
			b.Run(fmt.Sprintf("pods=%d/period=%v", pods, period), func(b *testing.B) {
				rt, _ := overSocket(b, pods)
				g, err := pleg.New(pleg.Config{Runtime: rt, Period: period, MaxPeriod: period})
				require.NoError(b, err)
				ctx, stop := context.WithCancel(b.Context())
				var wg sync.WaitGroup
				wg.Go(func() { _ = g.Run(ctx) })
				defer wg.Wait()
				defer stop()
				time.Sleep(3 * time.Second) // the first relist
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
