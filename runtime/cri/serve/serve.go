package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// maxMessage is how large a message may be, in bytes, in either direction: what
// containerd and the kubelet's client have agreed on.
const maxMessage = 16 << 20

// Streams are the streams of the containers and sandboxes of Config.Runtime:
// process.Runtime and fakecri.Runtime have them. It is called by many goroutines;
// each call has a context that ends when the client has gone. An exit code is no
// error. StreamPortForward closes conn.
type Streams interface {
	StreamExec(ctx context.Context, containerID string, cmd []string, s runtime.Streams) (exitCode int32, err error)
	StreamAttach(ctx context.Context, containerID string, s runtime.Streams) error
	StreamPortForward(ctx context.Context, sandboxID string, port int32, conn io.ReadWriteCloser) error
}

// Config configures [New].
type Config struct {
	// Listener accepts the clients. Required; [Listen] makes one at a unix
	// socket. Run closes it.
	Listener net.Listener

	// Runtime answers the calls of the RuntimeService. Required.
	Runtime internalapi.RuntimeService

	// Images answers the calls of the ImageService. Nil: the service is not
	// there (Unimplemented).
	Images internalapi.ImageManagerService

	// Streams are served for those of the calls Exec, Attach and PortForward
	// that Runtime refuses with Unimplemented or errors.ErrUnsupported. Nil:
	// its refusals stand.
	Streams Streams

	// StreamAddr is the TCP address that streams are served at, and the host in
	// their URLs. Empty: 127.0.0.1 and any free port. Whoever gets to it needs
	// a URL as well, which is a secret, so that another address than a loopback
	// one is possible; what is said there is not encrypted.
	StreamAddr string

	// Called is told of each call when it has been answered, on the goroutine
	// that did it: it should not block. Nil: nobody is.
	Called func(CallInfo)

	// Logger gets what goes wrong with connections, at the debug level. Nil
	// discards.
	Logger *slog.Logger
}

// CallInfo is what became of a call.
type CallInfo struct {
	Method   string // RunPodSandbox
	Duration time.Duration
	Err      error // nil, or what the service returned
}

// A Server serves a CRI runtime. It is made by [New].
type Server struct {
	cfg      Config
	ran      atomic.Bool // Run was called; internal/runonce would be one import too many
	urls     *tokens
	creation time.Duration // creationTimeout
}

// New returns a server that does nothing yet.
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

// Run serves until ctx ends, and returns nil then, after all calls have
// returned, whose contexts have ended as well; streams are cut. It returns an
// error if a listener fails. A second call returns an error.
func (s *Server) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("serve: Server.Run was called before")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.WaitForHandlers(true),
		grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream),
	)
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
	runtimeapi.RegisterRuntimeServiceServer(server, service)
	if s.cfg.Images != nil {
		runtimeapi.RegisterImageServiceServer(server, &imageService{images: s.cfg.Images})
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
	clients := &cutter{Listener: s.cfg.Listener, conns: map[net.Conn]struct{}{}}
	start("accept clients", func() error { return server.Serve(clients) })
	if streams != nil {
		start("accept clients of streams", streams)
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	cancel()
	// It waits two minutes for a client that has connected and says nothing.
	clients.cut()
	server.Stop()
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
