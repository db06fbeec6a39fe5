package cri_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A slowCRI delays each call that is needed to create a pod.
type slowCRI struct {
	*fakeCRI
	latency time.Duration
}

func (s slowCRI) RunPodSandbox(ctx context.Context, c *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	time.Sleep(s.latency)
	return s.fakeCRI.RunPodSandbox(ctx, c, handler)
}

func (s slowCRI) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	time.Sleep(s.latency)
	return s.fakeCRI.PodSandboxStatus(ctx, id, verbose)
}

func (s slowCRI) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	time.Sleep(s.latency)
	return s.fakeCRI.ListContainers(ctx, filter)
}

func (s slowCRI) CreateContainer(ctx context.Context, id string, c *runtimeapi.ContainerConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	time.Sleep(s.latency)
	return s.fakeCRI.CreateContainer(ctx, id, c, sandbox)
}

func (s slowCRI) StartContainer(ctx context.Context, id string) error {
	time.Sleep(s.latency)
	return s.fakeCRI.StartContainer(ctx, id)
}

func (s slowCRI) ImageStatus(ctx context.Context, spec *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	time.Sleep(s.latency)
	return s.fakeCRI.ImageStatus(ctx, spec, verbose)
}

// Create100Pods creates 100 pods of one container concurrently on a runtime with
// 50 ms latency per call. The floor is the sum of the calls that depend on each
// other: sandbox, its addresses, container, start.
func BenchmarkCreate100Pods(b *testing.B) {
	const latency, pods, floor = 50 * time.Millisecond, 100, 4 * 50 * time.Millisecond
	for name, with := range map[string]struct {
		ahead  bool
		starts int
	}{"one after the other": {}, "images ahead": {ahead: true}, "no limit": {starts: -1}, "images ahead, no limit": {true, -1}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				f := newFake()
				f.has("img:1")
				dir := b.TempDir()
				rt, err := cri.New(cri.Config{
					Name: "fake", Runtime: slowCRI{f, latency}, Images: slowCRI{f, latency},
					Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"}, Pulls: cri.PullConfig{Ahead: with.ahead}, Calls: cri.CallConfig{Starts: with.starts},
				})
				require.NoError(b, err)
				b.StartTimer()
				var wg sync.WaitGroup
				for i := range pods {
					wg.Go(func() {
						pod := podOf(container("web"))
						pod.Name, pod.UID = fmt.Sprint("web-", i), types.UID(fmt.Sprint("u-", i))
						_, err := rt.SyncPod(b.Context(), runtime.SyncRequest{Pod: pod, Status: &runtime.PodStatus{UID: pod.UID}})
						require.NoError(b, err)
					})
				}
				wg.Wait()
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/floor.Seconds(), "x-floor")
		})
	}
}
