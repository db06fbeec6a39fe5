package eviction_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/eviction"
)

// crowd is a node with so many pods and the kubelet's thresholds; the memory threshold
// is met if low is true.
func crowd(pods int, low bool) eviction.Inputs {
	r := rand.New(rand.NewPCG(1, 2))
	in := eviction.Inputs{Now: noon}
	in.Policy.Thresholds, _ = eviction.Settings{EnforcePods: true}.WithDefaults("linux", false).Parse()
	fs := &statsapi.FsStats{AvailableBytes: bytesOf("80Gi"), CapacityBytes: bytesOf("100Gi"), InodesFree: new(uint64(900)), Inodes: new(uint64(1000))}
	memory := &statsapi.MemoryStats{AvailableBytes: bytesOf("10Gi"), WorkingSetBytes: bytesOf("20Gi"), UsageBytes: bytesOf("25Gi")}
	if low {
		memory.AvailableBytes = bytesOf("50Mi")
	}
	in.Summary = &statsapi.Summary{Node: statsapi.NodeStats{
		Memory: memory, Fs: fs, Runtime: &statsapi.RuntimeStats{ImageFs: fs, ContainerFs: fs},
		SystemContainers: []statsapi.ContainerStats{{Name: "pods", Memory: memory}},
		Rlimit:           &statsapi.RlimitStats{MaxPID: new(int64(30000)), NumOfRunningProcesses: new(int64(3000))},
	}}
	for i := range pods {
		pod := podOf(fmt.Sprintf("pod-%d", i))
		pod.Spec.Priority = new(int32(r.IntN(4)))
		pod.CreationTimestamp = metav1.NewTime(noon)
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "sidecar"})
		for c := range pod.Spec.Containers {
			pod.Spec.Containers[c].Resources.Requests = v1.ResourceList{
				v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: *resource.NewQuantity(r.Int64N(1<<30), resource.BinarySI),
			}
		}
		pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		in.Pods = append(in.Pods, pod)
		stats := statsapi.PodStats{
			PodRef: statsapi.PodReference{UID: string(pod.UID)}, Memory: &statsapi.MemoryStats{WorkingSetBytes: new(r.Uint64N(1 << 30))},
			VolumeStats: []statsapi.VolumeStats{{Name: "data", FsStats: statsapi.FsStats{UsedBytes: new(r.Uint64N(1 << 30))}}},
		}
		for _, c := range pod.Spec.Containers {
			stats.Containers = append(stats.Containers, statsapi.ContainerStats{
				Name: c.Name, Memory: &statsapi.MemoryStats{WorkingSetBytes: new(r.Uint64N(1 << 30))},
				Rootfs: &statsapi.FsStats{UsedBytes: new(r.Uint64N(1 << 30))}, Logs: &statsapi.FsStats{UsedBytes: new(r.Uint64N(1 << 30))},
			})
		}
		in.Summary.Pods = append(in.Summary.Pods, stats)
	}
	return in
}

// BenchmarkPlan: 500 pods, one of them to be evicted.
func BenchmarkPlan(b *testing.B) {
	for _, low := range []bool{false, true} {
		b.Run(map[bool]string{false: "healthy", true: "low"}[low], func(b *testing.B) {
			in := crowd(500, low)
			b.ReportAllocs()
			for b.Loop() {
				if p := in.Plan(); (p.Chosen != nil) != low {
					b.Fatal(p.Chosen)
				}
			}
		})
	}
}

// BenchmarkPass: one pass over 110 pods with available figures, and one eviction.
func BenchmarkPass(b *testing.B) {
	in := crowd(110, true)
	m, err := eviction.New(eviction.Config{
		Policy: in.Policy, Pods: podList(in.Pods),
		Summary: func(context.Context, bool) (*statsapi.Summary, error) {
			in.Summary.Node.Memory.Time = metav1.NewTime(time.Now())
			return in.Summary, nil
		},
	})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if result, err := m.Pass(b.Context()); err != nil || len(result.Evicted) != 1 {
			b.Fatal(result, err)
		}
	}
}
