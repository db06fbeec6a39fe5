package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kubeparts/kubeparts/cm/topology"
)

const (
	// dialTimeout is the time within which a registered plugin must be reachable.
	dialTimeout = 10 * time.Second

	// optionsTimeout is the deadline of GetDevicePluginOptions.
	optionsTimeout = 10 * time.Second

	// preStartTimeout is the deadline of PreStartContainer, and of other calls unless
	// Config.CallTimeout is set.
	preStartTimeout = pluginapi.KubeletPreStartContainerRPCTimeoutInSecs * time.Second

	// preferTimeout is the deadline of GetPreferredAllocation, during which no other container
	// is allocated devices. A plugin that exceeds it is not asked again for preferPause.
	preferTimeout = 5 * time.Second
	preferPause   = time.Minute

	// maxMessage is the maximum size in bytes of a message of a plugin.
	maxMessage = 16 << 20
)

// A plugin is a connection to a registered plugin.
type plugin struct {
	resource string
	endpoint string
	options  *pluginapi.DevicePluginOptions
	client   pluginapi.DevicePluginClient
	conn     *grpc.ClientConn
	cancel   context.CancelCauseFunc
	turn     chan struct{} // of capacity 1; held during a call of Allocate

	preferAgain time.Time // after a call that it did not answer; guarded by Manager.mu

	devices map[string]Device // by ID, as reported last; nil before that. Manager.mu guards it.
}

// errReplaced is the cause of disconnecting a plugin after another has registered with its
// resource and endpoint.
var errReplaced = errors.New("another plugin has registered with the endpoint")

// newPlugin connects to a plugin and gets its options. Those of the registration are not used, as
// in the kubelet: plugins exist that set them in only one of the two places.
func newPlugin(ctx context.Context, dir string, req *pluginapi.RegisterRequest) (*plugin, error) {
	conn, err := grpc.NewClient("unix:"+filepath.Join(dir, req.Endpoint),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("device: endpoint %s: %w", req.Endpoint, err)
	}
	p := &plugin{resource: req.ResourceName, endpoint: req.Endpoint, conn: conn, client: pluginapi.NewDevicePluginClient(conn), turn: make(chan struct{}, 1)}
	if err = p.reach(ctx); err == nil {
		ctx, cancel := context.WithTimeout(ctx, optionsTimeout)
		defer cancel()
		if p.options, err = p.client.GetDevicePluginOptions(ctx, &pluginapi.Empty{}); err != nil {
			err = fmt.Errorf("failed to get device plugin options: %w", err)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("device: endpoint %s: %w", req.Endpoint, err), conn.Close())
	}
	return p, nil
}

// follow calls set with each list of devices until the stream ends, and returns the
// reason.
func (p *plugin) follow(ctx context.Context, set func([]Device)) error {
	stream, err := p.client.ListAndWatch(ctx, &pluginapi.Empty{})
	if err != nil {
		return fmt.Errorf("ListAndWatch: %w", err)
	}
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("ListAndWatch: stream closed by the plugin")
		}
		if err != nil {
			return fmt.Errorf("ListAndWatch: %w", err)
		}
		list := make([]Device, 0, len(answer.GetDevices()))
		for _, d := range answer.GetDevices() {
			device := Device{ID: d.GetID(), Healthy: d.GetHealth() == pluginapi.Healthy}
			for _, n := range d.GetTopology().GetNodes() {
				device.Nodes |= topology.MaskOf(int(n.GetID()))
			}
			list = append(list, device)
		}
		set(list)
	}
}

// reach waits until the connection is established.
func (p *plugin) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, dialTimeout, fmt.Errorf("not reachable within %v", dialTimeout))
	defer cancel()
	p.conn.Connect()
	for s := p.conn.GetState(); s != connectivity.Ready; s = p.conn.GetState() {
		if !p.conn.WaitForStateChange(ctx, s) {
			return context.Cause(ctx)
		}
		if s == connectivity.Idle {
			p.conn.Connect()
		}
	}
	return nil
}

// serve waits until no other call of Allocate is in progress.
func (p *plugin) serve(ctx context.Context) (done func(), err error) {
	select {
	case p.turn <- struct{}{}:
		return func() { <-p.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("device: %w", context.Cause(ctx))
	}
}

// allocate calls Allocate.
func (p *plugin) allocate(ctx context.Context, ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	answer, err := p.client.Allocate(ctx, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids}},
	})
	if err != nil {
		return nil, err
	}
	if n := len(answer.GetContainerResponses()); n == 0 {
		return nil, fmt.Errorf("no containers return in allocation response %v", answer)
	} else if n > 1 {
		return nil, fmt.Errorf("%d containers return in the allocation response for one", n)
	}
	return answer.ContainerResponses[0], nil
}

// prefer calls GetPreferredAllocation.
func (p *plugin) prefer(ctx context.Context, available, must []string, size int) ([]string, error) {
	answer, err := p.client.GetPreferredAllocation(ctx, &pluginapi.PreferredAllocationRequest{
		ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
			AvailableDeviceIDs: available, MustIncludeDeviceIDs: must, AllocationSize: int32(size),
		}},
	})
	if err != nil || len(answer.GetContainerResponses()) == 0 {
		return nil, err
	}
	return answer.ContainerResponses[0].GetDeviceIDs(), nil
}

// stop disconnects the plugin. p may be nil.
func (p *plugin) stop(why error) {
	if p != nil && p.cancel != nil {
		p.cancel(why)
	}
}
