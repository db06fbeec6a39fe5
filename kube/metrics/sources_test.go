package metrics_test

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume/certificate"
)

// pods implements metrics.Pods.
type pods struct {
	desired []*v1.Pod
	mirrors map[types.UID]types.UID
	workers []podworker.PodState
}

func (p *pods) Pods() []*v1.Pod                     { return p.desired }
func (p *pods) MirrorUIDs() map[types.UID]types.UID { return p.mirrors }
func (p *pods) States() []podworker.PodState        { return p.workers }

// usage implements metrics.Stats. CPUAndMemory returns summary, too.
type usage struct {
	summary func(context.Context) (*statsapi.Summary, error)
	cgroups bool
}

func (u *usage) Summary(ctx context.Context, _ bool) (*statsapi.Summary, error) {
	return u.summary(ctx)
}
func (u *usage) CPUAndMemory(ctx context.Context) (*statsapi.Summary, error) { return u.summary(ctx) }
func (u *usage) Dirs() (node, containers string)                             { return "/var/lib/kubelet", "/var/lib/containerd" }

func (u *usage) Cgroup(types.UID) (cgroups.Name, bool) {
	return cgroups.Name{"kubepods", "podu1"}, u.cgroups
}

func (u *usage) CgroupStats(types.UID, string) (cgroups.Stats, error) {
	if !u.cgroups {
		return cgroups.Stats{}, errors.New("there is no cgroup")
	}
	return cgroups.Stats{
		At: at, CPU: &cgroups.CPUStats{UserNanos: 15e8, SystemNanos: 5e8, Periods: 10, Throttled: 4, ThrottledNanos: 5e8},
		Memory: &cgroups.MemoryStats{OOMKills: 2, Cache: 50, MappedFile: 20, ActiveFile: 30, InactiveFile: 10, Kernel: 5, Peak: p(uint64(500)), LimitHits: 3},
		Pids:   &cgroups.PidsStats{Current: 7, Limit: 100, Processes: []int{4711, 4712}},
		IO:     &cgroups.IOStats{Devices: []cgroups.DeviceIO{{Major: 254, ReadBytes: 1, WriteBytes: 2, Reads: 3, Writes: 4}, {Major: 7, Minor: 3, Reads: 5}, {Major: 7, Minor: 4, Reads: 6}}},
	}, nil
}

// set makes u return a summary.
func (u *usage) set(s *statsapi.Summary, err error) {
	u.summary = func(context.Context) (*statsapi.Summary, error) { return s, err }
}

type runtimePods []*runtime.Pod

func (p runtimePods) Pods() []*runtime.Pod { return p }

// parts implements the other sources.
type parts struct{}

func (parts) ResizeState(types.UID) allocation.ResizeState {
	return allocation.ResizeState{PendingReason: v1.PodReasonDeferred, InProgress: true}
}

func (parts) Counts() []certificate.Count {
	return []certificate.Count{{Signer: "example.com/signer", State: "fresh", Sources: 2}}
}

func (parts) VolumeCounts() (desired, actual map[string]int) {
	return map[string]int{"kubernetes.io/secret": 3}, map[string]int{"kubernetes.io/secret": 2}
}

func (parts) DeviceCounts() (healthy, unhealthy map[string]int) {
	return map[string]int{"vendor/gpu": 3}, map[string]int{"vendor/gpu": 1}
}

func (parts) InUse() (int, map[string]int)    { return 2, map[string]int{"gpu.example.com": 2} }
func (parts) ProtectedMemory() (int64, int64) { return 1 << 30, 1 << 20 }
