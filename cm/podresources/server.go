package podresources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	alpha "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/internal/unixgrpc"
)

// CPUs is implemented by cpu.Manager.
type CPUs interface {
	CPUs(uid types.UID, container string) (cpus cpuset.CPUSet, exclusive bool)
	PodCPUs(uid types.UID) cpuset.CPUSet // of pods that have CPUs as a whole
	Allocatable() cpuset.CPUSet
}

// Memory is implemented by memory.Manager.
type Memory interface {
	Blocks(uid types.UID, container string) []memory.Block
	PodBlocks(uid types.UID) []memory.Block // of pods that have memory as a whole
	Allocatable() []memory.Block
}

// Devices is implemented by device.Manager.
type Devices interface {
	Devices(uid types.UID, container string) map[string][]device.Device
	All() map[string][]device.Device
}

// Claims is implemented by dra.Manager.
type Claims interface {
	UsedDevices(pod *v1.Pod, c *v1.Container) []dra.UsedDevice
}

// Config configures a [Server].
type Config struct {
	// Socket is the path of the socket. Required; its directory is created. Monitors
	// expect /var/lib/kubelet/pod-resources/kubelet.sock.
	Socket string

	// Pods has the pods that List reports. Required.
	Pods Pods

	// The managers. If nil, the resource is not reported.
	CPUs    CPUs
	Memory  Memory
	Devices Devices
	Claims  Claims

	// QPS and Burst limit the calls of all clients together. Zero means 100 and 10.
	QPS   float64
	Burst int

	// Called is called after each call, including rejected ones, for metrics. It must not
	// block. May be nil.
	Called func(CallInfo)

	// Logger. If nil, messages are discarded.
	Logger *slog.Logger
}

// Pods has the pods of a node: *podworker.Table.
type Pods interface {
	// Running returns the pods that may have running containers. They are not modified.
	Running() []*v1.Pod
}

// A CallInfo is the result of one call.
type CallInfo struct {
	Method string // "/v1.PodResourcesLister/List"
	Err    error  // nil if the call succeeded
}

// A Server implements the pod resources API v1, and v1alpha1, of which monitors need the
// devices. Safe for concurrent use.
type Server struct {
	api.UnimplementedPodResourcesListerServer
	cfg Config
	ran runonce.Guard
}

// New returns a Server for cfg. It starts nothing.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Socket == "":
		return nil, errors.New("podresources: Config.Socket is empty")
	case cfg.Pods == nil:
		return nil, errors.New("podresources: Config.Pods is nil")
	case cfg.QPS < 0 || cfg.Burst < 0:
		return nil, errors.New("podresources: Config.QPS or Config.Burst is negative")
	}
	if cfg.Called == nil {
		cfg.Called = func(CallInfo) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: cfg}, nil
}

// Run serves until ctx is done and returns nil. It returns an error if the socket cannot
// be served, if another server is listening on it, and on a second call.
func (s *Server) Run(ctx context.Context) error {
	if err := s.ran.Enter("podresources: Server"); err != nil {
		return err
	}
	server := unixgrpc.Server{
		Socket: s.cfg.Socket, QPS: s.cfg.QPS, Burst: s.cfg.Burst,
		Register: func(to *grpc.Server) {
			api.RegisterPodResourcesListerServer(to, s)
			alpha.RegisterPodResourcesListerServer(to, v1alpha1Server{s: s})
		},
		Called: func(method string, err error) { s.cfg.Called(CallInfo{method, err}) },
	}
	if err := server.Run(ctx); err != nil {
		return fmt.Errorf("podresources: %w", err)
	}
	return nil
}

// List returns the resources of the active pods.
func (s *Server) List(context.Context, *api.ListPodResourcesRequest) (*api.ListPodResourcesResponse, error) {
	out := &api.ListPodResourcesResponse{}
	for _, pod := range s.cfg.Pods.Running() {
		out.PodResources = append(out.PodResources, s.pod(pod))
	}
	return out, nil
}

// Get returns the resources of one pod.
func (s *Server) Get(_ context.Context, req *api.GetPodResourcesRequest) (*api.GetPodResourcesResponse, error) {
	for _, pod := range s.cfg.Pods.Running() {
		if pod.Name == req.GetPodName() && pod.Namespace == req.GetPodNamespace() {
			return &api.GetPodResourcesResponse{PodResources: s.pod(pod)}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "pod %s in namespace %s not found", req.GetPodName(), req.GetPodNamespace())
}

// GetAllocatableResources returns the allocatable CPUs, memory and devices.
func (s *Server) GetAllocatableResources(context.Context, *api.AllocatableResourcesRequest) (*api.AllocatableResourcesResponse, error) {
	out := &api.AllocatableResourcesResponse{}
	if s.cfg.CPUs != nil {
		out.CpuIds = ids(s.cfg.CPUs.Allocatable())
	}
	if s.cfg.Memory != nil {
		out.Memory = blocks(s.cfg.Memory.Allocatable())
	}
	if s.cfg.Devices != nil {
		out.Devices = devices(s.cfg.Devices.All())
	}
	return out, nil
}

// pod returns the resources of the containers of a pod including sidecars, but not of
// init containers that terminate.
func (s *Server) pod(pod *v1.Pod) *api.PodResources {
	out := &api.PodResources{Name: pod.Name, Namespace: pod.Namespace}
	if s.cfg.CPUs != nil {
		out.CpuIds = ids(s.cfg.CPUs.PodCPUs(pod.UID))
	}
	if s.cfg.Memory != nil {
		out.Memory = blocks(s.cfg.Memory.PodBlocks(pod.UID))
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; podspec.IsSidecar(c) {
			out.Containers = append(out.Containers, s.container(pod, c))
		}
	}
	for i := range pod.Spec.Containers {
		out.Containers = append(out.Containers, s.container(pod, &pod.Spec.Containers[i]))
	}
	return out
}

func (s *Server) container(pod *v1.Pod, c *v1.Container) *api.ContainerResources {
	name := c.Name
	out := &api.ContainerResources{Name: name}
	if s.cfg.CPUs != nil {
		if cpus, exclusive := s.cfg.CPUs.CPUs(pod.UID, name); exclusive {
			out.CpuIds = ids(cpus)
		}
	}
	if s.cfg.Memory != nil {
		out.Memory = blocks(s.cfg.Memory.Blocks(pod.UID, name))
	}
	if s.cfg.Devices != nil {
		out.Devices = devices(s.cfg.Devices.Devices(pod.UID, name))
	}
	if s.cfg.Claims != nil {
		out.DynamicResources = dynamicResources(s.cfg.Claims.UsedDevices(pod, c))
	}
	return out
}

func ids(cpus cpuset.CPUSet) []int64 {
	var out []int64
	for _, id := range cpus.List() {
		out = append(out, int64(id))
	}
	return out
}

func blocks(all []memory.Block) []*api.ContainerMemory {
	var out []*api.ContainerMemory
	for _, b := range all {
		out = append(out, &api.ContainerMemory{MemoryType: string(b.Type), Size: b.Size, Topology: nodes(b.Nodes)})
	}
	return out
}

// devices groups the devices of a resource by NUMA nodes.
func devices(all map[string][]device.Device) []*api.ContainerDevices {
	var out []*api.ContainerDevices
	for _, name := range slices.Sorted(maps.Keys(all)) {
		byNodes := map[string]*api.ContainerDevices{}
		for _, d := range all[name] {
			entry := byNodes[d.Nodes.String()]
			if entry == nil {
				entry = &api.ContainerDevices{ResourceName: name, Topology: nodes(d.Nodes.IDs())}
				byNodes[d.Nodes.String()] = entry
				out = append(out, entry)
			}
			entry.DeviceIds = append(entry.DeviceIds, d.ID)
		}
	}
	return out
}

func nodes(ids []int) *api.TopologyInfo {
	if len(ids) == 0 {
		return nil
	}
	out := &api.TopologyInfo{}
	for _, id := range ids {
		out.Nodes = append(out.Nodes, &api.NUMANode{ID: int64(id)})
	}
	return out
}
