package devicetest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kubeparts/kubeparts/internal/plugintest"
)

// A Plugin is a device plugin. With Dir and Resource set it is usable, has no devices,
// and responds to Allocate with an environment variable DEVICES that lists the IDs.
type Plugin struct {
	pluginapi.UnimplementedDevicePluginServer

	// Dir is the directory with kubelet.sock and the socket of the plugin.
	Dir      string
	Resource string

	// Endpoint is the name of its socket. Empty means a name derived from Resource.
	Endpoint string

	// Version is the API version for registration. Empty means the supported one.
	Version string

	Options *pluginapi.DevicePluginOptions

	// OptionsError is the error of GetDevicePluginOptions. If nil, it returns Options.
	OptionsError error

	// OnAllocate handles Allocate. If nil, the response sets the variable DEVICES.
	OnAllocate func(ctx context.Context, ids []string) (*pluginapi.AllocateResponse, error)

	// OnPrefer handles GetPreferredAllocation. If nil, the response is empty.
	OnPrefer func(available, must []string, size int) []string

	// OnPreStart handles PreStartContainer. If nil, it succeeds.
	OnPreStart func(ctx context.Context, ids []string) error

	mu        sync.Mutex // guards the fields below
	devices   []*pluginapi.Device
	changed   chan struct{} // closed when devices change
	allocated [][]string

	sockets plugintest.Sockets
}

// Device returns a healthy device that is close to the NUMA nodes.
func Device(id string, nodes ...int64) *pluginapi.Device {
	d := &pluginapi.Device{ID: id, Health: pluginapi.Healthy}
	for _, n := range nodes {
		if d.Topology == nil {
			d.Topology = &pluginapi.TopologyInfo{}
		}
		d.Topology.Nodes = append(d.Topology.Nodes, &pluginapi.NUMANode{ID: n})
	}
	return d
}

// Ill returns an unhealthy device.
func Ill(id string) *pluginapi.Device {
	return &pluginapi.Device{ID: id, Health: pluginapi.Unhealthy}
}

// Set replaces the devices of the plugin.
func (p *Plugin) Set(devices ...*pluginapi.Device) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.devices = devices
	if p.changed != nil {
		close(p.changed)
	}
	p.changed = make(chan struct{})
}

// Allocated returns the device IDs of each Allocate call.
func (p *Plugin) Allocated() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.allocated)
}

// Start serves the plugin's socket and registers the plugin.
func (p *Plugin) Start(ctx context.Context) error {
	if err := p.Serve(); err != nil {
		return err
	}
	return p.Register(ctx)
}

// Serve serves the plugin's socket.
func (p *Plugin) Serve() error {
	return p.sockets.Serve(filepath.Join(p.Dir, p.endpoint()), func(s *grpc.Server) { pluginapi.RegisterDevicePluginServer(s, p) })
}

// Register registers the plugin with the agent.
func (p *Plugin) Register(ctx context.Context) error {
	conn, err := grpc.NewClient("unix:"+filepath.Join(p.Dir, "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	if err != nil {
		return err
	}
	defer conn.Close()
	version := p.Version
	if version == "" {
		version = pluginapi.Version
	}
	_, err = pluginapi.NewRegistrationClient(conn).Register(ctx, &pluginapi.RegisterRequest{
		Version: version, Endpoint: p.endpoint(), ResourceName: p.Resource, Options: p.Options,
	}, grpc.WaitForReady(true))
	return err
}

// Stop closes all connections as if the process had terminated.
func (p *Plugin) Stop() { p.sockets.Stop() }

func (p *Plugin) endpoint() string {
	if p.Endpoint != "" {
		return p.Endpoint
	}
	return filepath.Base(p.Resource) + ".sock"
}

// GetDevicePluginOptions implements the protocol.
func (p *Plugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	if p.OptionsError != nil {
		return nil, p.OptionsError
	}
	if p.Options == nil {
		return &pluginapi.DevicePluginOptions{}, nil
	}
	return p.Options, nil
}

// ListAndWatch implements the protocol.
func (p *Plugin) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	for {
		p.mu.Lock()
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		devices, changed := p.devices, p.changed
		p.mu.Unlock()
		if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: devices}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// Allocate implements the protocol.
func (p *Plugin) Allocate(ctx context.Context, req *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	var ids []string
	for _, c := range req.GetContainerRequests() {
		ids = append(ids, c.GetDevicesIds()...)
	}
	p.mu.Lock()
	p.allocated = append(p.allocated, ids)
	p.mu.Unlock()
	if p.OnAllocate != nil {
		return p.OnAllocate(ctx, ids)
	}
	return &pluginapi.AllocateResponse{ContainerResponses: []*pluginapi.ContainerAllocateResponse{
		{Envs: map[string]string{"DEVICES": fmt.Sprint(ids)}},
	}}, nil
}

// GetPreferredAllocation implements the protocol.
func (p *Plugin) GetPreferredAllocation(_ context.Context, req *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	out := &pluginapi.PreferredAllocationResponse{}
	for _, c := range req.GetContainerRequests() {
		answer := &pluginapi.ContainerPreferredAllocationResponse{}
		if p.OnPrefer != nil {
			answer.DeviceIDs = p.OnPrefer(c.GetAvailableDeviceIDs(), c.GetMustIncludeDeviceIDs(), int(c.GetAllocationSize()))
		}
		out.ContainerResponses = append(out.ContainerResponses, answer)
	}
	return out, nil
}

// PreStartContainer implements the protocol.
func (p *Plugin) PreStartContainer(ctx context.Context, req *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	if p.OnPreStart != nil {
		if err := p.OnPreStart(ctx, req.GetDevicesIds()); err != nil {
			return nil, err
		}
	}
	return &pluginapi.PreStartContainerResponse{}, nil
}
