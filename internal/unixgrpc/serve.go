// Package unixgrpc serves gRPC on Unix sockets. Its clients are not trusted: they cannot
// delay the end of a server, and the size and the rate of their calls, the connections, and
// the memory of answers that they do not accept are limited.
package unixgrpc

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxRequest is the maximum size in bytes of a request of a [Server], and of its header:
// the requests are names.
const maxRequest = 64 << 10

// A Server serves a service whose requests are small. Its values must not be modified after
// Run has been called.
type Server struct {
	// Socket is the path of the socket. Its directory is created.
	Socket string

	// Register registers the service.
	Register func(*grpc.Server)

	// QPS and Burst limit the calls of all clients together. Zero means 100 and 10.
	QPS   float64
	Burst int

	// Limits bound the connections and their calls.
	Limits Limits

	// Admit returns the error of a call that is not served, after the rate limit. If nil,
	// all are.
	Admit func() error

	// Called is called after each call, including rejected ones, with its full method and
	// the error that the client receives. May be nil.
	Called func(method string, err error)
}

// Run serves until ctx is done and returns nil after all calls have returned. It returns an
// error if the socket cannot be served; the errors of [Listen] apply.
func (s *Server) Run(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(s.Socket), 0o750); err != nil {
		return err
	}
	listener, err := Listen(ctx, s.Socket)
	if err != nil {
		return err
	}
	limit := rate.NewLimiter(rate.Limit(cmp.Or(s.QPS, 100)), cmp.Or(s.Burst, 10))
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxHeaderListSize(maxRequest),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
			err = s.call(limit, call.FullMethod, func() (err error) {
				answer, err = handle(ctx, req)
				return err
			})
			return answer, err
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, call *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			return s.call(limit, call.FullMethod, func() error { return handle(srv, stream) })
		}),
	}
	if err := Serve(ctx, listener, Service{Register: s.Register, Options: options, Limits: s.Limits}); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// call calls handle if the call is admitted.
func (s *Server) call(limit *rate.Limiter, method string, handle func() error) (err error) {
	switch {
	case !limit.Allow():
		err = status.Error(codes.ResourceExhausted, "rejected by rate limit")
	case s.Admit != nil:
		err = s.Admit()
	}
	if err == nil {
		err = handle()
	}
	if s.Called != nil {
		s.Called(method, err)
	}
	return err
}

// A Service is what [Serve] serves.
type Service struct {
	// Register registers the service.
	Register func(*grpc.Server)

	// Options are further options of the server.
	Options []grpc.ServerOption

	Limits Limits
}

// Serve serves on the listener until ctx is done and returns nil. It then closes all
// connections, and all calls have returned. It returns an error if the listener fails. In any
// case it closes the listener.
func Serve(ctx context.Context, listener net.Listener, service Service) error {
	limits := service.Limits.withDefaults()
	server := grpc.NewServer(slices.Concat(limits.options(), []grpc.ServerOption{grpc.WaitForHandlers(true)}, service.Options)...)
	service.Register(server)
	clients := &connections{Listener: listener, limits: limits, all: map[*connection]struct{}{}}
	done := make(chan error, 1)
	go func() { done <- server.Serve(clients) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-done:
		done <- nil
	}
	clients.closeAll() // otherwise Stop waits for a client that sends nothing
	server.Stop()
	<-done
	return err
}
