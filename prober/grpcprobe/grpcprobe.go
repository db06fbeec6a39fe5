package grpcprobe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// maxResponse is the maximum size of a response in bytes.
const maxResponse = 10 << 10

// Handler sends a request of the gRPC health protocol; SERVING is a success. The zero value is
// ready to use.
type Handler struct{}

// Probe implements [prober.Handler].
func (Handler) Probe(ctx context.Context, t prober.Target) (prober.Outcome, error) {
	action := t.Probe.GRPC
	switch {
	case action == nil:
		return prober.Outcome{}, errors.New("probe has no grpc")
	case t.PodIP == "":
		return prober.Outcome{}, errors.New("pod has no IP yet")
	case action.Port < 1 || action.Port > 65535:
		return prober.Outcome{}, fmt.Errorf("invalid port number: %v", action.Port)
	}
	security, err := securityOf(action)
	if err != nil {
		return prober.Outcome{}, err
	}
	failed := func(format string, args ...any) (prober.Outcome, error) {
		return prober.Outcome{Result: runtime.ProbeFailure, Output: fmt.Sprintf(format, args...)}, nil
	}

	to := net.JoinHostPort(t.PodIP, strconv.Itoa(int(action.Port)))
	ctx, cancel := context.WithTimeout(ctx, t.Timeout) // of the dial and the call
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///"+to,
		grpc.WithTransportCredentials(security),
		grpc.WithUserAgent(prober.UserAgent),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return prober.Dial(ctx, "tcp", addr) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponse)),
	)
	if err != nil {
		return failed("error: failed to connect service at %q: %+v", to, err)
	}
	defer conn.Close()
	connected := connect(ctx, conn)
	if err := ctx.Err(); err != nil {
		return failed("timeout: failed to connect service %q within %v: %+v", to, t.Timeout, err)
	}
	response, err := health.NewHealthClient(conn).Check(ctx, &health.HealthCheckRequest{Service: deref(action.Service)})
	switch code := status.Code(err); {
	case err != nil && !connected:
		return failed("error: failed to connect service at %q: %s", to, status.Convert(err).Message())
	case code == codes.Unimplemented:
		return failed("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): %s", status.Convert(err).Message())
	case code == codes.DeadlineExceeded:
		return failed("timeout: health rpc did not complete within %v", t.Timeout)
	case err != nil:
		return failed("error: health rpc probe failed: %+v", err)
	case response.GetStatus() != health.HealthCheckResponse_SERVING:
		return failed("service unhealthy (responded with %q)", response.GetStatus().String())
	}
	return prober.Outcome{Result: runtime.ProbeSuccess, Output: "service healthy"}, nil
}

// connect waits until the connection is established or has failed, in which case a call fails
// immediately with the reason. It reports whether the connection is established.
func connect(ctx context.Context, conn *grpc.ClientConn) bool {
	conn.Connect()
	for {
		switch state := conn.GetState(); state {
		case connectivity.Ready:
			return true
		case connectivity.TransientFailure, connectivity.Shutdown:
			return false
		default:
			if !conn.WaitForStateChange(ctx, state) {
				return false
			}
		}
	}
}

// securityOf returns plaintext credentials, or TLS without verification of the certificate.
func securityOf(action *v1.GRPCAction) (credentials.TransportCredentials, error) {
	switch {
	case action.Mode == nil || *action.Mode == v1.GRPCProbeModePlaintext:
		return insecure.NewCredentials(), nil
	case *action.Mode == v1.GRPCProbeModeTLS:
		return credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}), nil
	default:
		return nil, fmt.Errorf("unknown mode %q", *action.Mode)
	}
}

func deref(service *string) string {
	if service == nil {
		return ""
	}
	return *service
}
