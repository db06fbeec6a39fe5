package eviction

import (
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/internal/restart"
)

// A usageOf function tells how much of a signal's resource a pod uses. stats is
// nil if nothing is known of the pod.
type usageOf func(pod *v1.Pod, stats *statsapi.PodStats) int64

// usage returns how pods' use of a signal is measured (ev-43).
func (in *Inputs) usage(s Signal) usageOf {
	switch s.Resource() {
	case v1.ResourceMemory:
		return func(_ *v1.Pod, stats *statsapi.PodStats) int64 {
			if stats == nil || stats.Memory == nil {
				return 0
			}
			return figureOf(stats.Memory.WorkingSetBytes)
		}
	case resourcePIDs:
		return func(_ *v1.Pod, stats *statsapi.PodStats) int64 {
			if stats == nil || stats.ProcessStats == nil {
				return 0
			}
			return figureOf(stats.ProcessStats.ProcessCount)
		}
	}
	of := func(fs *statsapi.FsStats) *uint64 { return fs.UsedBytes }
	if s.Resource() == resourceInodes {
		of = func(fs *statsapi.FsStats) *uint64 { return fs.InodesUsed }
	}
	rootfs, rest := true, true
	switch {
	case in.Layout == DedicatedImageFS:
		rootfs = in.Layout.of(s) == imageFS
		rest = !rootfs
	case in.Layout == SplitImageFS && in.Layout.of(s) == imageFS:
		return func(pod *v1.Pod, _ *statsapi.PodStats) int64 {
			if in.Policy.Compat.BlindImageUsage || s.Resource() == resourceInodes {
				return 0 // nobody counts the inodes of images
			}
			return max(in.ImageBytes[pod.UID], 0)
		}
	}
	return func(pod *v1.Pod, stats *statsapi.PodStats) int64 { return disk(pod, stats, of, rootfs, rest) }
}

// measured reports whether a summary has what pods are ranked by for a signal. A pod
// whose containers have no figure of a disk at all lacks them, one without volumes does
// not.
func (in *Inputs) measured(s Signal, stats *statsapi.PodStats) bool {
	switch {
	case in.Layout == SplitImageFS && in.Layout.of(s) == imageFS:
		return true // no summary has it
	case stats == nil:
		return false
	case s.Resource() == v1.ResourceMemory:
		return stats.Memory != nil && stats.Memory.WorkingSetBytes != nil
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

// disk sums up a pod's writable layers, if rootfs, and its logs and local
// volumes, if rest.
func disk(pod *v1.Pod, stats *statsapi.PodStats, of func(*statsapi.FsStats) *uint64, rootfs, rest bool) (n int64) {
	if stats == nil {
		return 0
	}
	for i := range stats.Containers {
		c := &stats.Containers[i]
		if rootfs && c.Rootfs != nil {
			n = add(n, figureOf(of(c.Rootfs)))
		}
		if rest && c.Logs != nil {
			n = add(n, figureOf(of(c.Logs)))
		}
	}
	if !rest {
		return n
	}
	for i := range stats.VolumeStats {
		if v := &stats.VolumeStats[i]; isLocal(pod, v.Name) {
			n = add(n, figureOf(of(&v.FsStats)))
		}
	}
	return n
}

// isLocal reports whether a volume takes of the node's own disk (ev-44).
func isLocal(pod *v1.Pod, name string) bool {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == name {
			return v.HostPath != nil || v.ConfigMap != nil || v.GitRepo != nil ||
				v.EmptyDir != nil && v.EmptyDir.Medium == v1.StorageMediumDefault
		}
	}
	return false
}

// figure reads a figure of a summary. One that is missing, or is below zero where
// it was computed, counts as zero.
func figureOf(n *uint64) int64 {
	if n == nil || *n > math.MaxInt64 {
		return 0
	}
	return int64(*n)
}

// request returns how much of a resource a pod asks for: what
// component-helpers' PodRequests has for it, of one resource and without making a
// list of all of them for each of some hundred pods.
func request(pod *v1.Pod, name v1.ResourceName) int64 {
	if name == resourceInodes {
		return 0 // it is no resource that could be requested
	}
	var containers, sidecars, most int64
	for i := range pod.Spec.Containers {
		containers = add(containers, asked(&pod.Spec.Containers[i], name))
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		n := add(sidecars, asked(c, name))
		if restart.Sidecar(c) {
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

func asked(c *v1.Container, name v1.ResourceName) int64 {
	q, ok := c.Resources.Requests[name]
	if !ok {
		return 0
	}
	return q.Value()
}

// index finds the stats of pods by UID.
func index(summary *statsapi.Summary) map[types.UID]*statsapi.PodStats {
	if summary == nil {
		return nil
	}
	byUID := make(map[types.UID]*statsapi.PodStats, len(summary.Pods))
	for i := range summary.Pods {
		byUID[types.UID(summary.Pods[i].PodRef.UID)] = &summary.Pods[i]
	}
	return byUID
}
