package cri_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// counting is a runtime with the given stats.
type counting struct {
	*fakeCRI
	pods       []*runtimeapi.PodSandboxStats
	containers []*runtimeapi.ContainerStats
	fail       error // of stats of pods
}

func (c counting) ListPodSandboxStats(context.Context, *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return c.pods, c.fail
}

func (c counting) ListContainerStats(context.Context, *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	return c.containers, nil
}

func (c counting) ContainerStats(context.Context, string) (*runtimeapi.ContainerStats, error) {
	if len(c.containers) == 0 {
		return nil, nil
	}
	return c.containers[0], nil
}

func uint64Value(n uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: n} }

func (c counting) engine(t *testing.T) *cri.Runtime {
	rt, err := cri.New(cri.Config{Name: "fake", Runtime: c, Images: c.fakeCRI})
	require.NoError(t, err)
	return rt
}

var (
	at   = time.Unix(1000, 0)
	used = &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{Id: "c1", Metadata: &runtimeapi.ContainerMetadata{Name: "web"}, Labels: map[string]string{
			"io.kubernetes.pod.uid": "u1", "io.kubernetes.pod.name": "p1", "io.kubernetes.pod.namespace": "n1",
		}},
		Cpu:           &runtimeapi.CpuUsage{Timestamp: at.UnixNano(), UsageCoreNanoSeconds: uint64Value(5e9), UsageNanoCores: uint64Value(0)},
		Memory:        &runtimeapi.MemoryUsage{Timestamp: at.UnixNano(), WorkingSetBytes: uint64Value(7 << 20)},
		Swap:          &runtimeapi.SwapUsage{Timestamp: at.UnixNano(), SwapUsageBytes: uint64Value(1)},
		WritableLayer: &runtimeapi.FilesystemUsage{Timestamp: at.UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/d"}, UsedBytes: uint64Value(9), InodesUsed: uint64Value(2)},
	}
	plain = runtime.ContainerStats{
		ID: "fake://c1", Name: "web",
		CPU:           &runtime.CPUUsage{At: at, CoreNanos: new(uint64(5e9)), NanoCores: new(uint64)},
		Memory:        &runtime.MemoryUsage{At: at, WorkingSet: new(uint64(7 << 20))},
		Swap:          &runtime.SwapUsage{At: at, Usage: new(uint64(1))},
		WritableLayer: &runtime.FSUsage{At: at, Mountpoint: "/d", Bytes: new(uint64(9)), Inodes: new(uint64(2))},
	}
)

func TestStatsDistinguishZeroFromUnknown(t *testing.T) {
	rt := counting{fakeCRI: newFake(), containers: []*runtimeapi.ContainerStats{used}}.engine(t)
	s, err := rt.ContainerStats(t.Context(), "fake://c1")
	require.NoError(t, err)
	assert.Equal(t, plain, *s)

	_, err = counting{fakeCRI: newFake()}.engine(t).ContainerStats(t.Context(), "fake://c1")
	require.ErrorIs(t, err, runtime.ErrNotFound, "a response without stats")
}

func TestStatsOfPodsAreOneCall(t *testing.T) {
	eth0 := &runtimeapi.NetworkInterfaceUsage{Name: "eth0", RxBytes: uint64Value(3)}
	rt := counting{fakeCRI: newFake(), pods: []*runtimeapi.PodSandboxStats{
		{}, nil, // not of pods
		{
			Attributes: &runtimeapi.PodSandboxAttributes{Id: "s1", Metadata: &runtimeapi.PodSandboxMetadata{Uid: "u1", Name: "p1", Namespace: "n1"}},
			Linux: &runtimeapi.LinuxPodSandboxStats{
				Cpu:        used.Cpu,
				Network:    &runtimeapi.NetworkUsage{Timestamp: at.UnixNano(), DefaultInterface: eth0, Interfaces: []*runtimeapi.NetworkInterfaceUsage{nil, eth0, {Name: "eth1"}}},
				Process:    &runtimeapi.ProcessUsage{ProcessCount: uint64Value(4)},
				Containers: []*runtimeapi.ContainerStats{used, nil, {}},
			},
		},
		{Attributes: &runtimeapi.PodSandboxAttributes{Id: "s2", Metadata: &runtimeapi.PodSandboxMetadata{Uid: "u2"}}}, // of a system without
	}}.engine(t)
	pods, err := rt.PodStats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []runtime.PodStats{
		{
			UID: "u1", Name: "p1", Namespace: "n1", SandboxID: "s1", CPU: plain.CPU, NetworkAt: at,
			Network:   []runtime.NetworkUsage{{Name: "eth0", RxBytes: new(uint64(3))}, {Name: "eth1"}},
			Processes: new(uint64(4)), Containers: []runtime.ContainerStats{plain},
		},
		{UID: "u2", SandboxID: "s2"},
	}, pods)
}

func TestStatsOfPodsFallBackToThoseOfContainers(t *testing.T) {
	for _, failure := range []error{
		status.Error(codes.Unimplemented, "unknown method ListPodSandboxStats"),
		status.Error(codes.Unknown, "a sandbox has no cgroup parent"),
	} {
		dead := &runtimeapi.ContainerStats{Attributes: used.Attributes, WritableLayer: used.WritableLayer} // containerd's word on one that has exited
		c := counting{fakeCRI: newFake(), containers: []*runtimeapi.ContainerStats{used, nil, {}, dead, used}, fail: failure}
		pods, err := c.engine(t).PodStats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []runtime.PodStats{{UID: "u1", Name: "p1", Namespace: "n1", Containers: []runtime.ContainerStats{plain, plain}}}, pods)
	}
	c := counting{fakeCRI: newFake(), fail: status.Error(codes.Unavailable, "connection refused")}
	_, err := c.engine(t).PodStats(t.Context())
	require.ErrorIs(t, err, runtime.ErrUnavailable, "the runtime is unreachable")
}
