package grpcprobe_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/prober/grpcprobe"
	"github.com/kubeparts/kubeparts/runtime"
)

var _ prober.Handler = grpcprobe.Handler{}

// listen returns a listener, and the target of a probe of it.
func listen(t *testing.T) (net.Listener, prober.Target) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l, prober.Target{
		Pod: &v1.Pod{}, Container: &v1.Container{Name: "db"}, PodIP: "127.0.0.1", Timeout: 20 * time.Second,
		Probe: &v1.Probe{ProbeHandler: v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: int32(l.Addr().(*net.TCPAddr).Port)}}},
	}
}

// serve starts a server with the services that register gives it.
func serve(t *testing.T, register func(*grpc.Server), options ...grpc.ServerOption) prober.Target {
	t.Helper()
	l, to := listen(t)
	server := grpc.NewServer(options...)
	register(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-done)
	})
	return to
}

// ask runs a probe and returns its outcome.
func ask(t *testing.T, to prober.Target) prober.Outcome {
	t.Helper()
	out, err := grpcprobe.Handler{}.Probe(t.Context(), to)
	require.NoError(t, err)
	return out
}

func TestAServerThatServesIsASuccess(t *testing.T) { // prober-56 prober-57 prober-58
	known := health.NewServer()
	known.SetServingStatus("sick", healthpb.HealthCheckResponse_NOT_SERVING)
	known.SetServingStatus("odd", healthpb.HealthCheckResponse_UNKNOWN)
	var agents []string
	to := serve(t, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, known) },
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			agents = md.Get("user-agent")
			return next(ctx, req)
		}))
	for service, want := range map[string]prober.Outcome{
		"":        {Result: runtime.ProbeSuccess, Output: "service healthy"},
		"sick":    {Result: runtime.ProbeFailure, Output: `service unhealthy (responded with "NOT_SERVING")`},
		"odd":     {Result: runtime.ProbeFailure, Output: `service unhealthy (responded with "UNKNOWN")`},
		"unheard": {Result: runtime.ProbeFailure, Output: "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"}, // prober-59
	} {
		to.Probe.GRPC.Service = &service
		assert.Equal(t, want, ask(t, to), service)
	}
	to.Probe.GRPC.Service = nil
	assert.Equal(t, runtime.ProbeSuccess, ask(t, to).Result)
	require.Len(t, agents, 1)
	assert.True(t, strings.HasPrefix(agents[0], prober.UserAgent+" "), agents[0])
}

// A stub answers a Check with its own status.
type stub struct {
	healthpb.UnimplementedHealthServer
	check func(ctx context.Context) (*healthpb.HealthCheckResponse, error)
}

func (s stub) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return s.check(ctx)
}

func TestResponsesThatAreFailures(t *testing.T) { // prober-59
	answering := func(check func(ctx context.Context) (*healthpb.HealthCheckResponse, error)) prober.Target {
		return serve(t, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, stub{check: check}) })
	}
	failsWith := func(to prober.Target, words string) {
		t.Helper()
		out := ask(t, to)
		assert.Equal(t, runtime.ProbeFailure, out.Result)
		assert.Contains(t, out.Output, words)
	}

	failsWith(serve(t, func(*grpc.Server) {}),
		"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service grpc.health.v1.Health")
	failsWith(answering(func(context.Context) (*healthpb.HealthCheckResponse, error) {
		return nil, status.Error(codes.PermissionDenied, "not you")
	}), "error: health rpc probe failed: rpc error: code = PermissionDenied desc = not you")
	failsWith(answering(func(context.Context) (*healthpb.HealthCheckResponse, error) {
		return nil, status.Error(codes.Unavailable, "busy")
	}), "error: health rpc probe failed: rpc error: code = Unavailable desc = busy")
	failsWith(serve(t, func(s *grpc.Server) {
		s.RegisterService(&grpc.ServiceDesc{
			ServiceName: "grpc.health.v1.Health", HandlerType: (*any)(nil),
			Methods: []grpc.MethodDesc{{MethodName: "Check", Handler: func(_ any, _ context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				return &healthpb.HealthCheckRequest{Service: strings.Repeat("x", 1<<20)}, nil
			}}},
		}, nil)
	}), "received message larger than max")

	slow := answering(func(ctx context.Context) (*healthpb.HealthCheckResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	for slow.Timeout = 300 * time.Millisecond; ; slow.Timeout *= 2 {
		out := ask(t, slow)
		if strings.Contains(out.Output, "failed to connect") && slow.Timeout < time.Minute {
			continue // a busy machine needs longer for that
		}
		assert.Equal(t, prober.Outcome{Result: runtime.ProbeFailure, Output: fmt.Sprintf("timeout: health rpc did not complete within %v", slow.Timeout)}, out)
		break
	}
}

func TestAServerThatCannotBeReached(t *testing.T) { // prober-59
	l, to := listen(t)
	at := l.Addr().String()
	require.NoError(t, l.Close())
	begun := time.Now()
	out := ask(t, to)
	assert.Equal(t, runtime.ProbeFailure, out.Result)
	assert.Contains(t, out.Output, `error: failed to connect service at "`+at+`": `)
	assert.Contains(t, out.Output, "dial tcp "+at)
	assert.Less(t, time.Since(begun), to.Timeout, "that is known at once")

	l, to = listen(t) // it accepts, and never responds
	to.Timeout = 300 * time.Millisecond
	assert.Equal(t, prober.Outcome{
		Result: runtime.ProbeFailure,
		Output: `timeout: failed to connect service "` + l.Addr().String() + `" within 300ms: context deadline exceeded`,
	}, ask(t, to))

	web := httptest.NewServer(nil) // it speaks something else
	defer web.Close()
	to.Timeout = 20 * time.Second
	to.Probe.GRPC.Port = int32(web.Listener.Addr().(*net.TCPAddr).Port)
	out = ask(t, to)
	assert.Equal(t, runtime.ProbeFailure, out.Result)
	assert.Contains(t, out.Output, "error: failed to connect service at ")
}

func TestTheCertificateOfAServerIsNotVerified(t *testing.T) { // prober-60
	web := httptest.NewTLSServer(nil) // for its certificate
	certificate := web.TLS.Certificates[0]
	web.Close()
	to := serve(t, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, health.NewServer()) },
		grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate}})))
	assert.Equal(t, runtime.ProbeFailure, ask(t, to).Result, "plaintext by default")
	to.Probe.GRPC.Mode = new(v1.GRPCProbeModePlaintext)
	assert.Equal(t, runtime.ProbeFailure, ask(t, to).Result)
	to.Probe.GRPC.Mode = new(v1.GRPCProbeModeTLS)
	assert.Equal(t, prober.Outcome{Result: runtime.ProbeSuccess, Output: "service healthy"}, ask(t, to))

	to.Probe.GRPC.Mode = new(v1.GRPCProbeMode("Morse"))
	_, err := grpcprobe.Handler{}.Probe(t.Context(), to)
	require.EqualError(t, err, `unknown mode "Morse"`)
}

func TestTheProxyOfTheAgentIsNotUsed(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://192.0.2.1:3128")
	to := serve(t, func(s *grpc.Server) { healthpb.RegisterHealthServer(s, health.NewServer()) })
	assert.Equal(t, runtime.ProbeSuccess, ask(t, to).Result)
}

func TestBadInputOfAGRPCProbeIsNamed(t *testing.T) {
	_, to := listen(t)
	for words, change := range map[string]func(){
		"probe has no grpc":           func() { to.Probe = &v1.Probe{} },
		"pod has no IP yet":           func() { to.PodIP = "" },
		"invalid port number: 0":      func() { to.Probe.GRPC.Port = 0 },
		"invalid port number: 700000": func() { to.Probe.GRPC.Port = 700000 },
	} {
		_, to = listen(t)
		change()
		_, err := grpcprobe.Handler{}.Probe(t.Context(), to)
		require.EqualError(t, err, words)
	}
}

func TestNothingIsLeftOfAProbe(t *testing.T) {
	l, to := listen(t)
	to.Timeout = 100 * time.Millisecond
	closed := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, err = io.Copy(io.Discard, conn) // until the other side closes
		}
		closed <- err
	}()
	for ; ; to.Timeout *= 2 { // a busy machine may not have connected by the end of the first
		assert.Equal(t, runtime.ProbeFailure, ask(t, to).Result)
		select {
		case err := <-closed:
			require.NoError(t, err)
			return
		case <-time.After(to.Timeout):
			require.Less(t, to.Timeout, time.Minute, "the connection exists")
		}
	}
}
