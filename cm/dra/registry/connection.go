package registry

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/types"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"

	"github.com/kubeparts/kubeparts/cm/dra"
)

// maxMessage is the maximum size in bytes of a message of a driver.
const maxMessage = 16 << 20

// maxReconnect is the maximum time between two attempts to connect to a plugin.
const maxReconnect = 5 * time.Second

// services are the versions of the services of a plugin that are used.
type services struct {
	dra    string
	health string // "": none
}

// chooseServices returns the newest versions that a plugin serves.
func chooseServices(supported []string) (s services, err error) {
	newest := func(versions ...string) string {
		for _, v := range versions {
			if slices.Contains(supported, v) {
				return v
			}
		}
		return ""
	}
	s.dra = newest(drav1.DRAPluginService, drav1beta1.DRAPluginService)
	s.health = newest(healthv1.DRAResourceHealthService, healthv1alpha1.DRAResourceHealthService)
	if s.dra == "" {
		const most = 8
		return s, fmt.Errorf("supported versions %q: want %s or %s", supported[:min(len(supported), most)], drav1.DRAPluginService, drav1beta1.DRAPluginService)
	}
	return s, nil
}

// A connection is a connection to a registered plugin.
type connection struct {
	driver   string
	endpoint string
	services services
	conn     *grpc.ClientConn
	stop     context.CancelFunc // of its goroutines; nil before they are started

	// Guarded by the mutex of the Registry. A replaced connection is closed after the
	// calls in progress.
	calls    int
	replaced bool
}

// newConnection returns a connection; it does not connect.
func newConnection(driver, endpoint string, s services) (*connection, error) {
	conn, err := grpc.NewClient("unix:"+endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxReconnect},
			MinConnectTimeout: maxReconnect,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", endpoint, err)
	}
	return &connection{driver: driver, endpoint: endpoint, services: s, conn: conn}, nil
}

// plugin returns the client of the driver's service.
func (c *connection) plugin() drav1.DRAPluginClient {
	if c.services.dra == drav1beta1.DRAPluginService {
		return drav1beta1.V1Beta1ClientWrapper{DRAPluginClient: drav1beta1.NewDRAPluginClient(c.conn)}
	}
	return drav1.NewDRAPluginClient(c.conn)
}

// fullMethod returns the full name of a method of the driver's service.
func (c *connection) fullMethod(method string) string {
	service := drav1.DRAPlugin_ServiceDesc.ServiceName
	if c.services.dra == drav1beta1.DRAPluginService {
		service = drav1beta1.DRAPlugin_ServiceDesc.ServiceName
	}
	return "/" + service + "/" + method
}

// prepare calls NodePrepareResources.
func (c *connection) prepare(ctx context.Context, claims []dra.ClaimRef) (map[types.UID]dra.Prepared, error) {
	answer, err := c.plugin().NodePrepareResources(ctx, &drav1.NodePrepareResourcesRequest{Claims: requested(claims)})
	if err != nil {
		return nil, err
	}
	return preparedOf(claims, answer.GetClaims())
}

// unprepare calls NodeUnprepareResources.
func (c *connection) unprepare(ctx context.Context, claims []dra.ClaimRef) (map[types.UID]error, error) {
	answer, err := c.plugin().NodeUnprepareResources(ctx, &drav1.NodeUnprepareResourcesRequest{Claims: requested(claims)})
	if err != nil {
		return nil, err
	}
	return unpreparedOf(claims, answer.GetClaims())
}

func requested(claims []dra.ClaimRef) (out []*drav1.Claim) {
	for _, ref := range claims {
		out = append(out, &drav1.Claim{Namespace: ref.Namespace, Name: ref.Name, Uid: string(ref.UID)})
	}
	return out
}

// follow keeps the connection established until ctx is done, and calls changed when it is
// established or lost.
func (c *connection) follow(ctx context.Context, changed func(connected bool)) {
	for {
		s := c.conn.GetState()
		switch s {
		case connectivity.Ready:
			changed(true)
		case connectivity.TransientFailure:
			changed(false)
		case connectivity.Idle: // before the first connection and after the loss of one
			c.conn.Connect()
		}
		if !c.conn.WaitForStateChange(ctx, s) {
			return
		}
	}
}

// watchHealth calls set with each list of devices until the stream ends, and returns the
// reason.
func (c *connection) watchHealth(ctx context.Context, set func([]deviceReport)) error {
	var client healthv1.DRAResourceHealthClient = healthv1.NewDRAResourceHealthClient(c.conn)
	if c.services.health == healthv1alpha1.DRAResourceHealthService {
		client = healthv1.V1Alpha1ClientWrapper{Client: healthv1alpha1.NewDRAResourceHealthClient(c.conn)}
	}
	stream, err := client.NodeWatchResources(ctx, &healthv1.NodeWatchResourcesRequest{})
	if err != nil {
		return err
	}
	for {
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		list, err := reportsOf(answer.GetDevices())
		if err != nil {
			return err
		}
		set(list)
	}
}
