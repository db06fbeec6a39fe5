package podresources_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	alpha "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/cm/podresources"
	"github.com/kubeparts/kubeparts/cm/topology"
)

// all returns resources for every container named "own".
type all struct{}

func (all) CPUs(_ types.UID, name string) (cpuset.CPUSet, bool) {
	return cpuset.New(4, 2), name == "own"
}

func (all) PodCPUs(types.UID) cpuset.CPUSet { return cpuset.New(5, 4, 2) }

type blocks struct{}

func (blocks) PodBlocks(types.UID) []memory.Block {
	return []memory.Block{{Nodes: []int{1}, Type: "memory", Size: 9}}
}

func (blocks) Blocks(_ types.UID, name string) []memory.Block {
	if name != "own" {
		return nil
	}
	return []memory.Block{{Nodes: []int{1}, Type: "memory", Size: 7}}
}
func (blocks) Allocatable() []memory.Block {
	return []memory.Block{{Nodes: []int{0}, Type: "memory", Size: 70}}
}
func (all) Allocatable() cpuset.CPUSet { return cpuset.New(1, 2, 3, 4) }

type devices struct{}

func (devices) Devices(_ types.UID, name string) map[string][]device.Device {
	if name != "own" {
		return nil
	}
	return map[string][]device.Device{"e/x": {{ID: "a", Nodes: topology.MaskOf(0)}, {ID: "b"}, {ID: "c", Nodes: topology.MaskOf(0)}}}
}
func (devices) All() map[string][]device.Device {
	return map[string][]device.Device{"e/y": {{ID: "z"}}, "e/x": {{ID: "a"}}}
}

type claims struct{}

func (claims) UsedDevices(_ *v1.Pod, c *v1.Container) []dra.UsedDevice {
	a, b := dra.ClaimRef{Namespace: "ns", Name: "of-" + c.Name}, dra.ClaimRef{Namespace: "ns", Name: "other"}
	return []dra.UsedDevice{
		{Claim: a, Driver: "d1", Device: dra.Device{Pool: "p", Name: "x", CDI: []string{"d1/claim=x"}}},
		{Claim: b, Driver: "d1", Device: dra.Device{Pool: "p", Name: "y", ShareID: "s"}},
		{Claim: a, Driver: "d2", Device: dra.Device{Pool: "p", Name: "x"}},
		{Claim: a, Driver: "d1", Device: dra.Device{Pool: "p", Name: "x", CDI: []string{"d1/claim=x"}}}, // of another request
	}
}

// running implements podresources.Pods.
type running struct{}

func (running) Running() []*v1.Pod {
	p := &v1.Pod{}
	p.Name, p.Namespace = "web", "default"
	always := v1.ContainerRestartPolicyAlways
	p.Spec.InitContainers = []v1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}}
	p.Spec.Containers = []v1.Container{{Name: "own"}, {Name: "shared"}}
	return []*v1.Pod{p}
}

func serve(t *testing.T, cfg podresources.Config) api.PodResourcesListerClient {
	t.Helper()
	return api.NewPodResourcesListerClient(connect(t, cfg))
}

// connect returns a connection to a new server.
func connect(t *testing.T, cfg podresources.Config) *grpc.ClientConn {
	t.Helper()
	dir, err := os.MkdirTemp("", "pr")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg.Socket = filepath.Join(dir, "sub", "kubelet.sock")
	cfg.Pods = running{}
	s, err := podresources.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-done) })
	conn, err := grpc.NewClient("unix:"+cfg.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// pr-1
func TestMonitorsOfTheFirstVersionAreServed(t *testing.T) {
	calls := make(chan podresources.CallInfo, 1)
	conn := connect(t, podresources.Config{CPUs: all{}, Memory: blocks{}, Devices: devices{}, Called: func(i podresources.CallInfo) { calls <- i }})
	list, err := alpha.NewPodResourcesListerClient(conn).List(t.Context(), &alpha.ListPodResourcesRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	require.Len(t, list.PodResources, 1)
	web := list.PodResources[0]
	assert.Equal(t, "default/web", web.Namespace+"/"+web.Name)
	require.Len(t, web.Containers, 3)
	for _, c := range web.Containers {
		if c.Name != "own" {
			assert.Empty(t, c.Devices)
			continue
		}
		require.Len(t, c.Devices, 1)
		assert.Equal(t, "e/x", c.Devices[0].ResourceName)
		assert.ElementsMatch(t, []string{"a", "b", "c"}, c.Devices[0].DeviceIds)
	}
	assert.Equal(t, podresources.CallInfo{Method: "/v1alpha1.PodResourcesLister/List"}, <-calls)
}

// pr-1, pr-2
func TestPodResourcesAreServedOnTheSocket(t *testing.T) {
	calls := make(chan podresources.CallInfo, 10)
	client := serve(t, podresources.Config{
		CPUs: all{}, Memory: blocks{}, Devices: devices{}, Claims: claims{}, Called: func(i podresources.CallInfo) { calls <- i },
	})
	list, err := client.List(t.Context(), &api.ListPodResourcesRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	require.Len(t, list.PodResources, 1)
	web := list.PodResources[0]
	assert.Equal(t, "default/web", web.Namespace+"/"+web.Name)
	assert.Equal(t, []int64{2, 4, 5}, web.CpuIds, "of the pod as a whole")
	require.Len(t, web.Memory, 1)
	assert.EqualValues(t, 9, web.Memory[0].Size)
	require.Len(t, web.Containers, 3, "not the init container")
	assert.Equal(t, "sidecar", web.Containers[0].Name)
	own := web.Containers[1]
	assert.Equal(t, []int64{2, 4}, own.CpuIds)
	require.Len(t, own.Memory, 1)
	assert.EqualValues(t, 1, own.Memory[0].Topology.Nodes[0].ID)
	require.Len(t, own.Devices, 2, "by nodes")
	assert.Equal(t, []string{"a", "c"}, own.Devices[0].DeviceIds)
	assert.Nil(t, own.Devices[1].Topology)
	require.Len(t, own.DynamicResources, 2)
	first, second := own.DynamicResources[0], own.DynamicResources[1]
	assert.Equal(t, "ns/of-own", first.ClaimNamespace+"/"+first.ClaimName)
	require.Len(t, first.ClaimResources, 2, "each device once")
	assert.Equal(t, "d1/p/x", first.ClaimResources[0].DriverName+"/"+first.ClaimResources[0].PoolName+"/"+first.ClaimResources[0].DeviceName)
	assert.Equal(t, "d1/claim=x", first.ClaimResources[0].CdiDevices[0].Name)
	assert.Nil(t, first.ClaimResources[0].ShareId)
	assert.Equal(t, "d2", first.ClaimResources[1].DriverName)
	assert.Equal(t, "s", second.ClaimResources[0].GetShareId())
	assert.Empty(t, web.Containers[2].CpuIds, "shared CPUs are not reported")

	get, err := client.Get(t.Context(), &api.GetPodResourcesRequest{PodName: "web", PodNamespace: "default"})
	require.NoError(t, err)
	assert.Equal(t, "web", get.PodResources.Name)
	_, err = client.Get(t.Context(), &api.GetPodResourcesRequest{PodName: "x", PodNamespace: "y"})
	assert.Equal(t, "pod x in namespace y not found", status.Convert(err).Message())

	assert.Equal(t, podresources.CallInfo{Method: "/v1.PodResourcesLister/List"}, <-calls)
	assert.Equal(t, podresources.CallInfo{Method: "/v1.PodResourcesLister/Get"}, <-calls)
	assert.ErrorContains(t, (<-calls).Err, "not found")

	total, err := client.GetAllocatableResources(t.Context(), &api.AllocatableResourcesRequest{})
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 2, 3, 4}, total.CpuIds)
	assert.EqualValues(t, 70, total.Memory[0].Size)
	assert.Equal(t, "e/x", total.Devices[0].ResourceName)
}

// pr-1
func TestCallsAboveTheRateLimitAreRejected(t *testing.T) {
	client := serve(t, podresources.Config{QPS: 0.001, Burst: 2})
	var messages []string
	for range 3 {
		_, err := client.List(t.Context(), &api.ListPodResourcesRequest{}, grpc.WaitForReady(true))
		messages = append(messages, status.Convert(err).Message())
	}
	assert.Equal(t, []string{"", "", "rejected by rate limit"}, messages)
}

func TestAConfigIsChecked(t *testing.T) {
	_, err := podresources.New(podresources.Config{})
	require.EqualError(t, err, "podresources: Config.Socket is empty")
	_, err = podresources.New(podresources.Config{Socket: "x"})
	require.EqualError(t, err, "podresources: Config.Pods is nil")
	_, err = podresources.New(podresources.Config{Socket: "x", Pods: running{}, QPS: -1})
	require.Error(t, err)
}

func ExampleServer_List() {
	s, err := podresources.New(podresources.Config{Socket: "/run/pods.sock", Pods: running{}, CPUs: all{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	list, err := s.List(context.Background(), nil)
	fmt.Println(list.PodResources[0].Containers[1].CpuIds, err)
	// Output: [2 4] <nil>
}
