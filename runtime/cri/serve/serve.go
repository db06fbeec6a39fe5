package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/internal/unixgrpc"
	"github.com/kubeparts/kubeparts/runtime"
)

// maxMessage is the maximum size in bytes of a message in either direction, as in
// containerd and the kubelet's client.
const maxMessage = 16 << 20

// maxCalls is the maximum number of concurrent calls of a client.
const maxCalls = 10_000

// Streams implements the streams of the containers and sandboxes of Config.Runtime;
// process.Runtime and fakecri.Runtime do. The methods are called concurrently; their
// ctx is done when the client has disconnected. A non-zero exit code is not an error.
// StreamPortForward must close conn.
type Streams interface {
	StreamExec(ctx context.Context, containerID string, cmd []string, s runtime.Streams) (exitCode int32, err error)
	StreamAttach(ctx context.Context, containerID string, s runtime.Streams) error
	StreamPortForward(ctx context.Context, sandboxID string, port int32, conn io.ReadWriteCloser) error
}

// Config configures [New].
type Config struct {
	// Listener accepts the clients. Run closes it. Required. [Listen] returns one for
	// a unix socket.
	Listener net.Listener

	// Runtime implements the RuntimeService. Required.
	Runtime internalapi.RuntimeService

	// Images implements the ImageService. If nil, the service is not served, and its
	// calls fail with Unimplemented.
	Images internalapi.ImageManagerService

	// Streams is used for calls of Exec, Attach and PortForward for which Runtime
	// returns Unimplemented or errors.ErrUnsupported. If nil, these errors are
	// returned.
	Streams Streams

	// StreamAddr is the TCP address on which streams are served, and the host in
	// their URLs. If empty, it is 127.0.0.1 with any free port. A client needs a
	// secret URL, but streams are not encrypted: an address other than loopback
	// exposes their contents to the network.
	StreamAddr string

	// Called is called after each call, on its goroutine. It should not block. May be
	// nil.
	Called func(CallInfo)

	// Logger receives errors of connections at the debug level. If nil, they are
	// discarded.
	Logger *slog.Logger
}

// CallInfo describes a completed call.
type CallInfo struct {
	Method   string // for example RunPodSandbox
	Duration time.Duration
	Err      error // returned by the service; may be nil
}

// A Server serves a CRI runtime.
type Server struct {
	cfg      Config
	ran      runonce.Guard
	urls     *tokens
	creation time.Duration // creationTimeout
}

// New returns a Server for cfg. It returns an error if Listener or Runtime is nil or
// StreamAddr is invalid. It starts nothing.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Listener == nil:
		return nil, errors.New("serve: Config.Listener is nil")
	case cfg.Runtime == nil:
		return nil, errors.New("serve: Config.Runtime is nil")
	}
	if cfg.StreamAddr == "" {
		cfg.StreamAddr = "127.0.0.1:0"
	}
	if _, _, err := net.SplitHostPort(cfg.StreamAddr); err != nil {
		return nil, fmt.Errorf("serve: Config.StreamAddr: %w", err)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: cfg, urls: newTokens(), creation: creationTimeout}, nil
}

// Run serves until ctx is done, and then returns nil, after it has canceled all calls,
// closed all streams, and all calls have returned. It returns an error if a listener
// fails. A second call returns an error.
func (s *Server) Run(ctx context.Context) error {
	if err := s.ran.Enter("serve: Server"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	service := &runtimeService{Server: s, runtime: s.cfg.Runtime}
	var streams func() error
	if s.cfg.Streams != nil {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.StreamAddr)
		if err != nil {
			return errors.Join(fmt.Errorf("serve: listen for streams: %w", err), s.cfg.Listener.Close())
		}
		service.host = listener.Addr().String()
		streams = func() error { return s.serveStreams(ctx, listener) }
	}
	grpcService := unixgrpc.Service{
		Register: func(to *grpc.Server) {
			runtimeapi.RegisterRuntimeServiceServer(to, service)
			if s.cfg.Images != nil {
				runtimeapi.RegisterImageServiceServer(to, &imageService{images: s.cfg.Images})
			}
		},
		Options: []grpc.ServerOption{
			grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
			grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream),
		},
		// An agent has a call per container that terminates, on one connection.
		Limits: unixgrpc.Limits{Streams: maxCalls, Undelivered: 16 * maxMessage},
	}
	var serving sync.WaitGroup
	failed := make(chan error, 2)
	start := func(what string, serve func() error) {
		serving.Go(func() {
			if err := serve(); err != nil && ctx.Err() == nil {
				failed <- fmt.Errorf("serve: %s: %w", what, err)
			}
		})
	}
	start("accept clients", func() error { return unixgrpc.Serve(ctx, s.cfg.Listener, grpcService) })
	if streams != nil {
		start("accept clients of streams", streams)
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	cancel()
	serving.Wait()
	return err
}

func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	begin := time.Now()
	resp, err := handle(ctx, req)
	s.called(info.FullMethod, begin, err)
	return resp, statusOf(err)
}

func (s *Server) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	begin := time.Now()
	err := handle(srv, stream)
	s.called(info.FullMethod, begin, err)
	return statusOf(err)
}
