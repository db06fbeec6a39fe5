package dratest

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/kubeparts/kubeparts/internal/plugintest"
)

// A Driver is the plugin of a DRA driver. With Name and Dir set it is usable, and prepares
// one device for each claim.
type Driver struct {
	drav1.UnimplementedDRAPluginServer
	healthv1.UnimplementedDRAResourceHealthServer

	// Name is the name of the driver, a DNS subdomain.
	Name string

	// Dir is the directory of the socket of the driver.
	Dir string

	// RegistryDir is the directory in which an agent looks for the sockets of plugins. If
	// empty, the driver does not register: the test passes Endpoint to the agent.
	RegistryDir string

	// Instance distinguishes the sockets of two plugins of one driver. May be empty.
	Instance string

	// Versions are the services that the driver registers with. Nil means v1 and v1beta1
	// of the driver, and v1 of its health. All versions are served in any case.
	Versions []string

	// CDIDir is a directory of CDI specifications. If not empty, the driver writes one for
	// each prepared claim, with Edits, and removes it when the claim is unprepared.
	CDIDir string

	// Edits are the changes of a container with a claim, as JSON of a CDI specification. If
	// empty, an environment variable CLAIM with the name of the claim.
	Edits string

	// OnPrepare returns the devices of a claim. If nil, the claim has the device returned
	// by Device.
	OnPrepare func(ctx context.Context, claim *drav1.Claim) ([]*drav1.Device, error)

	// Called is called at the begin of each call of the driver, for tests that end the
	// agent at that moment. May be nil.
	Called func(method string)

	mu       sync.Mutex // guards the fields below
	fault    Fault
	calls    []Call
	prepared map[string]*drav1.Claim // by UID
	health   []*healthv1.DeviceHealth
	changed  chan struct{} // closed when health changes

	sockets      plugintest.Sockets
	registration plugintest.Registration
}

// A Call is a call of the driver for one claim.
type Call struct {
	Method    string // "NodePrepareResources", "NodeUnprepareResources"
	Namespace string
	Claim     string
	UID       string
}

// Device returns the device that the driver prepares for a claim.
func (d *Driver) Device(claim *drav1.Claim) *drav1.Device {
	return &drav1.Device{PoolName: "pool", DeviceName: "device-" + claim.GetName(), CdiDeviceIds: []string{d.Name + "/claim=" + claim.GetUid()}}
}

// Endpoint returns the path of the socket of the driver.
func (d *Driver) Endpoint() string { return filepath.Join(d.Dir, "dra"+d.Instance+".sock") }

// Start serves the driver and, with RegistryDir, the socket at which it registers. A
// driver that was stopped may be started again, and has not forgotten its claims.
func (d *Driver) Start() error {
	if err := d.sockets.Serve(d.Endpoint(), func(s *grpc.Server) {
		drav1.RegisterDRAPluginServer(s, d)
		drav1beta1.RegisterDRAPluginServer(s, drav1beta1.V1ServerWrapper{DRAPluginServer: d})
		healthv1.RegisterDRAResourceHealthServer(s, d)
		healthv1alpha1.RegisterDRAResourceHealthServer(s, healthv1.V1ServerWrapper{Server: d})
	}); err != nil {
		return err
	}
	if d.RegistryDir == "" {
		return nil
	}
	versions := d.Versions
	if versions == nil {
		versions = []string{drav1.DRAPluginService, drav1beta1.DRAPluginService, healthv1.DRAResourceHealthService}
	}
	return d.registration.Register(&d.sockets, filepath.Join(d.RegistryDir, d.Name+d.Instance+"-reg.sock"), &registerapi.PluginInfo{
		Type: registerapi.DRAPlugin, Name: d.Name, Endpoint: d.Endpoint(), SupportedVersions: versions,
	})
}

// Stop closes all connections and removes the sockets, as if the process had terminated.
func (d *Driver) Stop() { d.sockets.Stop() }

// Calls returns the calls of the driver in order, including those that failed.
func (d *Driver) Calls() []Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

// Prepared returns the UIDs of the claims that are prepared, in order.
func (d *Driver) Prepared() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.prepared))
}

// Registrations returns the results of the registrations, in order.
func (d *Driver) Registrations() []*registerapi.RegistrationStatus { return d.registration.Statuses() }

// SetHealth replaces the health of the devices that the driver reports.
func (d *Driver) SetHealth(devices ...*healthv1.DeviceHealth) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.health = devices
	if d.changed != nil {
		close(d.changed)
	}
	d.changed = make(chan struct{})
}

// NodeWatchResources implements the stream of device health.
func (d *Driver) NodeWatchResources(_ *healthv1.NodeWatchResourcesRequest, stream grpc.ServerStreamingServer[healthv1.NodeWatchResourcesResponse]) error {
	for {
		d.mu.Lock()
		if d.changed == nil {
			d.changed = make(chan struct{})
		}
		devices, changed := d.health, d.changed
		d.mu.Unlock()
		if err := stream.Send(&healthv1.NodeWatchResourcesResponse{Devices: devices}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// begin records a call and returns the fault that applies to it.
func (d *Driver) begin(method string, claims []*drav1.Claim) Fault {
	if d.Called != nil {
		d.Called(method)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range claims {
		d.calls = append(d.calls, Call{method, c.GetNamespace(), c.GetName(), c.GetUid()})
	}
	return d.fault
}

// NodePrepareResources implements the protocol. It is idempotent.
func (d *Driver) NodePrepareResources(ctx context.Context, req *drav1.NodePrepareResourcesRequest) (*drav1.NodePrepareResourcesResponse, error) {
	fault := d.begin("NodePrepareResources", req.GetClaims())
	if err := fault.before(ctx); err != nil {
		return nil, err
	}
	out := &drav1.NodePrepareResourcesResponse{Claims: map[string]*drav1.NodePrepareResourceResponse{}}
	for _, c := range req.GetClaims() {
		devices, err := []*drav1.Device{d.Device(c)}, error(nil)
		if d.OnPrepare != nil {
			devices, err = d.OnPrepare(ctx, c)
		}
		if err == nil {
			err = d.keep(c, devices)
		}
		if err != nil {
			out.Claims[c.GetUid()] = &drav1.NodePrepareResourceResponse{Error: err.Error()}
			continue
		}
		out.Claims[c.GetUid()] = &drav1.NodePrepareResourceResponse{Devices: devices}
	}
	fault.alterPrepared(out.Claims)
	if fault == FailAfter {
		return nil, status.Error(codes.Internal, "failed after all claims were prepared")
	}
	return out, nil
}

// keep records a prepared claim and writes its CDI specification.
func (d *Driver) keep(c *drav1.Claim, devices []*drav1.Device) error {
	if d.CDIDir != "" {
		if err := writeCDI(d.CDIDir, d.Edits, c, devices); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.prepared == nil {
		d.prepared = map[string]*drav1.Claim{}
	}
	d.prepared[c.GetUid()] = c
	return nil
}

// NodeUnprepareResources implements the protocol. It is idempotent.
func (d *Driver) NodeUnprepareResources(ctx context.Context, req *drav1.NodeUnprepareResourcesRequest) (*drav1.NodeUnprepareResourcesResponse, error) {
	fault := d.begin("NodeUnprepareResources", req.GetClaims())
	if err := fault.before(ctx); err != nil {
		return nil, err
	}
	out := &drav1.NodeUnprepareResourcesResponse{Claims: map[string]*drav1.NodeUnprepareResourceResponse{}}
	for _, c := range req.GetClaims() {
		r := &drav1.NodeUnprepareResourceResponse{}
		if err := d.drop(c); err != nil {
			r.Error = err.Error()
		}
		out.Claims[c.GetUid()] = r
	}
	fault.alterUnprepared(out.Claims)
	if fault == FailAfter {
		return nil, status.Error(codes.Internal, "failed after all claims were unprepared")
	}
	return out, nil
}

func (d *Driver) drop(c *drav1.Claim) error {
	if d.CDIDir != "" {
		if err := os.Remove(cdiFile(d.CDIDir, c)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.prepared, c.GetUid())
	return nil
}
