package eviction

import (
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// A usageOf function returns a pod's usage of a signal's resource. stats may be nil.
type usageOf func(pod *v1.Pod, stats *statsapi.PodStats) int64

// usage returns the function that measures the pods' usage for a signal.
func (in *Inputs) usage(s Signal) usageOf {
	switch s.Resource() {
	case v1.ResourceMemory:
		return func(_ *v1.Pod, stats *statsapi.PodStats) int64 {
			n, _ := memory(stats)
			return n
		}
	case resourcePIDs:
		return func(_ *v1.Pod, stats *statsapi.PodStats) int64 {
			if stats == nil || stats.ProcessStats == nil {
				return 0
			}
			return amount(stats.ProcessStats.ProcessCount)
		}
	}
	of := func(fs *statsapi.FsStats) *uint64 { return fs.UsedBytes }
	if s.Resource() == resourceInodes {
		of = func(fs *statsapi.FsStats) *uint64 { return fs.InodesUsed }
	}
	rootfs, rest := true, true
	switch layout := in.fileSystems(); {
	case layout == dedicatedImageFS:
		rootfs = layout.filesystem(s) == imageFS
		rest = !rootfs
	case layout == splitImageFS && layout.filesystem(s) == imageFS:
		return func(pod *v1.Pod, _ *statsapi.PodStats) int64 {
			if s.Resource() == resourceInodes {
				return 0 // the inodes of images are not measured
			}
			return max(in.ImageBytes[pod.UID], 0)
		}
	}
	return func(pod *v1.Pod, stats *statsapi.PodStats) int64 { return disk(pod, stats, of, rootfs, rest) }
}

// memory returns the memory of a pod, or the sum of its containers' if the summary lacks it. ok
// reports whether either is known.
func memory(stats *statsapi.PodStats) (n int64, ok bool) {
	if stats == nil {
		return 0, false
	}
	if stats.Memory != nil && stats.Memory.WorkingSetBytes != nil {
		return amount(stats.Memory.WorkingSetBytes), true
	}
	for i := range stats.Containers {
		if m := stats.Containers[i].Memory; m != nil && m.WorkingSetBytes != nil {
			n, ok = add(n, amount(m.WorkingSetBytes)), true
		}
	}
	return n, ok
}

// measured reports whether a summary has the pod's usage for a signal. It lacks the disk
// usage if no container has any; volumes are not required.
func (in *Inputs) measured(s Signal, stats *statsapi.PodStats) bool {
	switch layout := in.fileSystems(); {
	case layout == splitImageFS && layout.filesystem(s) == imageFS:
		return true // the usage does not come from the summary
	case stats == nil:
		return false
	case s.Resource() == v1.ResourceMemory:
		_, ok := memory(stats)
		return ok
	case s.Resource() == resourcePIDs:
		return stats.ProcessStats != nil && stats.ProcessStats.ProcessCount != nil
	}
	has := func(fs *statsapi.FsStats) bool {
		return fs != nil && (s.Resource() == resourceInodes && fs.InodesUsed != nil || s.Resource() != resourceInodes && fs.UsedBytes != nil)
	}
	for i := range stats.Containers {
		if has(stats.Containers[i].Rootfs) || has(stats.Containers[i].Logs) {
			return true
		}
	}
	return false
}

// disk returns the usage of a pod's writable layers, if rootfs is set, and of its logs and
// local volumes, if rest is set.
func disk(pod *v1.Pod, stats *statsapi.PodStats, of func(*statsapi.FsStats) *uint64, rootfs, rest bool) (n int64) {
	if stats == nil {
		return 0
	}
	for i := range stats.Containers {
		c := &stats.Containers[i]
		if rootfs && c.Rootfs != nil {
			n = add(n, amount(of(c.Rootfs)))
		}
		if rest && c.Logs != nil {
			n = add(n, amount(of(c.Logs)))
		}
	}
	if !rest {
		return n
	}
	for i := range stats.VolumeStats {
		if v := &stats.VolumeStats[i]; isLocal(pod, v.Name) {
			n = add(n, amount(of(&v.FsStats)))
		}
	}
	return n
}

// isLocal reports whether a volume is on the node's disk (rule ev-44).
func isLocal(pod *v1.Pod, name string) bool {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == name {
			return v.HostPath != nil || v.ConfigMap != nil || v.GitRepo != nil ||
				v.EmptyDir != nil && v.EmptyDir.Medium == v1.StorageMediumDefault
		}
	}
	return false
}

// amount returns an amount of a summary. One that is missing, or was computed from a
// negative number, counts as zero.
func amount(n *uint64) int64 {
	if n == nil || *n > math.MaxInt64 {
		return 0
	}
	return int64(*n)
}

// request returns the pod's request of one resource, as component-helpers' PodRequests does.
// It does not allocate a ResourceList for each pod.
func request(pod *v1.Pod, name v1.ResourceName) int64 {
	if name == resourceInodes {
		return 0 // inodes cannot be requested
	}
	var containers, sidecars, most int64
	for i := range pod.Spec.Containers {
		containers = add(containers, containerRequest(&pod.Spec.Containers[i], name))
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		n := add(sidecars, containerRequest(c, name))
		if podspec.IsSidecar(c) {
			sidecars = n
		}
		most = max(most, n)
	}
	n := max(add(containers, sidecars), most)
	if r := pod.Spec.Resources; r != nil && name == v1.ResourceMemory {
		if q, ok := r.Requests[name]; ok {
			n = q.Value()
		}
	}
	if q, ok := pod.Spec.Overhead[name]; ok {
		n = add(n, q.Value())
	}
	return n
}

func containerRequest(c *v1.Container, name v1.ResourceName) int64 {
	q, ok := c.Resources.Requests[name]
	if !ok {
		return 0
	}
	return q.Value()
}

func statsByUID(summary *statsapi.Summary) map[types.UID]*statsapi.PodStats {
	if summary == nil {
		return nil
	}
	byUID := make(map[types.UID]*statsapi.PodStats, len(summary.Pods))
	for i := range summary.Pods {
		byUID[types.UID(summary.Pods[i].PodRef.UID)] = &summary.Pods[i]
	}
	return byUID
}
