package record_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/sim/record"
)

// newNode returns a runtime with 110 running pods of one container.
func newNode(t testing.TB) *fakecri.Runtime {
	fake, err := fakecri.New(fakecri.Config{})
	require.NoError(t, err)
	_, err = fake.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "nginx"}, nil, nil)
	require.NoError(t, err)
	for i := range 110 {
		startPod(t, fake, i)
	}
	return fake
}

func startPod(t testing.TB, client internalapi.RuntimeService, i int) {
	name := fmt.Sprint("pod-", i)
	labels := map[string]string{"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.uid": name, "io.kubernetes.container.name": "main"}
	pod := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: name}, Labels: labels}
	sandbox, err := client.RunPodSandbox(t.Context(), pod, "")
	require.NoError(t, err)
	id, err := client.CreateContainer(t.Context(), sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main"}, Image: &runtimeapi.ImageSpec{Image: "nginx"}, Labels: labels,
		Command: []string{"nginx", "-g", "daemon off;"}, Envs: []*runtimeapi.KeyValue{{Key: "PASSWORD", Value: []byte("hunter2")}},
	}, pod)
	require.NoError(t, err)
	require.NoError(t, client.StartContainer(t.Context(), id))
}

// BenchmarkCall measures calls of the CRI: ns/op is the part of the caller, writer-ns/op that of the
// writer, which runs afterwards here, and bytes/op are those of the file. The queue has the calls of all
// iterations: use -benchtime 1000x.
func BenchmarkCall(b *testing.B) {
	fake := newNode(b)
	for _, bench := range []struct {
		name string
		call func(internalapi.RuntimeService) error
	}{
		{"ListContainersOf110Pods", func(s internalapi.RuntimeService) error {
			_, err := s.ListContainers(b.Context(), nil)
			return err
		}},
		{"Status", func(s internalapi.RuntimeService) error {
			_, err := s.Status(b.Context(), false)
			return err
		}},
		{"StopContainer", func(s internalapi.RuntimeService) error {
			return s.StopContainer(b.Context(), "0123456789abcdef", 0)
		}},
	} {
		b.Run(bench.name+"/unrecorded", func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, bench.call(fake))
			}
		})
		b.Run(bench.name+"/recorded", func(b *testing.B) {
			dir := b.TempDir()
			r, err := record.New(record.Config{Dir: dir, QueueBytes: 1 << 30, MaxBytes: 1 << 30})
			require.NoError(b, err)
			service := r.RuntimeService(fake)
			for b.Loop() {
				require.NoError(b, bench.call(service))
			}
			begun := time.Now()
			run(b, r)
			b.ReportMetric(float64(time.Since(begun))/float64(b.N), "writer-ns/op")
			b.ReportMetric(float64(fileSize(b, dir))/float64(b.N), "bytes/op")
		})
	}
}

// fileSize returns the size of the files of a directory, in bytes.
func fileSize(t testing.TB, dir string) (sum int64) {
	files, err := record.Files(dir)
	require.NoError(t, err)
	for _, path := range files {
		info, err := os.Stat(path)
		require.NoError(t, err)
		sum += info.Size()
	}
	return sum
}

// The recording of a day of 110 idle pods is below 10 MB: of an agent whose runtime has events, and
// with the calls of one whose runtime has none, which lists each second.
func TestTheSizeOfADayOfAnIdleNode(t *testing.T) {
	var pods []*v1.Pod
	for i := range 110 {
		pods = append(pods, pod(fmt.Sprint("pod-", i)))
	}
	size := func(runs time.Duration) int64 {
		cfg := record.Config{Dir: t.TempDir()}
		recordAgent(t, cfg, runs, pods...)
		return fileSize(t, cfg.Dir)
	}
	start := size(10 * time.Minute)
	day := (size(40*time.Minute) - start) * 48
	t.Logf("with events: start of 110 pods and 10 minutes %d bytes, a day %d bytes", start, day)
	require.Less(t, day, int64(10e6))

	cfg := record.Config{Dir: t.TempDir(), QueueBytes: 1 << 28}
	const calls = 2000
	fake := newNode(t)
	recorded(t, cfg, func(r *record.Recorder) {
		service := r.RuntimeService(fake)
		for range calls / 2 {
			_, err := service.ListPodSandbox(t.Context(), nil)
			require.NoError(t, err)
			_, err = service.ListContainers(t.Context(), nil)
			require.NoError(t, err)
		}
	})
	lists := fileSize(t, cfg.Dir)
	t.Logf("without events: %d bytes for %d lists, %d bytes a day of two lists a second", lists, calls, lists*2*86400/calls)
	require.Less(t, lists*2*86400/calls, int64(10e6))
}
