package csi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// Register implements register.Handler. It calls NodeGetInfo and Drivers.DriverRegistered.
func (p *Plugin) Register(ctx context.Context, name, endpoint string, versions []string) error {
	if !slices.ContainsFunc(versions, func(v string) bool { return strings.HasPrefix(strings.TrimPrefix(v, "v"), "1.") }) {
		return fmt.Errorf("csi: driver %s supports versions %v; this agent speaks 1.x", name, versions)
	}
	if name == "" || strings.ContainsAny(name, "/\\^\x00") || name == "." || name == ".." {
		return fmt.Errorf("csi: %q is no name of a driver", name)
	}
	d := Driver{Name: name, Endpoint: endpoint}
	err := p.call(ctx, d, func(ctx context.Context, node csipb.NodeClient) error {
		return d.read(ctx, node)
	})
	if err != nil {
		return fmt.Errorf("csi: NodeGetInfo of driver %s: %w", name, err)
	}
	if p.cfg.Drivers != nil {
		if err := p.cfg.Drivers.DriverRegistered(ctx, d); err != nil {
			return fmt.Errorf("csi: make driver %s known: %w", name, err)
		}
	}
	p.mu.Lock()
	p.drivers[name] = d
	p.mu.Unlock()
	p.cfg.Logger.Info("CSI driver registered", "driver", name, "node", d.NodeID)
	p.cfg.Changed()
	p.wakeUp()
	return nil
}

// read sets the fields that NodeGetInfo returns.
func (d *Driver) read(ctx context.Context, node csipb.NodeClient) error {
	info, err := node.NodeGetInfo(ctx, new(csipb.NodeGetInfoRequest))
	if err != nil {
		return err
	}
	d.NodeID, d.MaxVolumes, d.Topology = info.GetNodeId(), info.GetMaxVolumesPerNode(), info.GetAccessibleTopology().GetSegments()
	if d.NodeID == "" {
		return errors.New("the node has no ID in its answer")
	}
	return nil
}

// Deregister implements register.Handler: volumes of the driver remain mounted.
func (p *Plugin) Deregister(ctx context.Context, name string) {
	p.mu.Lock()
	_, known := p.drivers[name]
	delete(p.drivers, name)
	p.mu.Unlock()
	if known && p.cfg.Drivers != nil {
		p.cfg.Drivers.DriverDeregistered(ctx, name)
	}
}

// driver returns a registered driver.
func (p *Plugin) driver(name string) (Driver, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, ok := p.drivers[name]
	if !ok {
		return d, fmt.Errorf("driver name %s not found in the list of registered CSI drivers", name)
	}
	return d, nil
}

// call calls do with a connection to the driver and the timeout of the plugin.
func (p *Plugin) call(ctx context.Context, d Driver, do func(context.Context, csipb.NodeClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	conn, err := grpc.NewClient("unix:"+strings.TrimPrefix(d.Endpoint, "unix://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			begun := time.Now()
			err := invoke(ctx, method, req, answer, conn, opts...)
			if status.Code(err) == codes.ResourceExhausted && (method == csipb.Node_NodeStageVolume_FullMethodName || method == csipb.Node_NodePublishVolume_FullMethodName) {
				p.exhaust(d.Name)
			}
			if p.cfg.Called != nil {
				p.cfg.Called(CallInfo{Driver: d.Name, Method: method, Code: status.Code(err).String(), Duration: time.Since(begun)})
			}
			return err
		}))
	if err != nil {
		return err
	}
	err = do(ctx, csipb.NewNodeClient(conn))
	return errors.Join(err, conn.Close())
}

// capabilities are the capabilities of the node service of a driver.
type capabilities map[csipb.NodeServiceCapability_RPC_Type]bool

func capabilitiesOf(ctx context.Context, node csipb.NodeClient) (capabilities, error) {
	answer, err := node.NodeGetCapabilities(ctx, new(csipb.NodeGetCapabilitiesRequest))
	if err != nil {
		return nil, fmt.Errorf("NodeGetCapabilities: %w", err)
	}
	can := capabilities{}
	for _, c := range answer.GetCapabilities() {
		can[c.GetRpc().GetType()] = true
	}
	return can, nil
}

// final reports whether the driver has completed a failed call. For some status codes this is unknown.
func final(err error) bool {
	s, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	if !ok {
		return false
	}
	switch s.GRPCStatus().Code() {
	case codes.OK, codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted, codes.Unknown:
		return false
	}
	return true
}
