package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/kubeparts/kubeparts/kube/server"
)

// patience bounds waits for actions that take no time on an idle machine.
const patience = 90 * time.Second

// clients are the clients in use, by protocol.
var clients = map[string]func(c *rest.Config, u *url.URL) (remotecommand.Executor, error){
	"SPDY": func(c *rest.Config, u *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewSPDYExecutor(c, http.MethodPost, u)
	},
	"WebSocket v5": func(c *rest.Config, u *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutor(c, http.MethodGet, u.String())
	},
	"WebSocket v4": func(c *rest.Config, u *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutorForProtocols(c, http.MethodGet, u.String(), "v4.channel.k8s.io")
	},
}

// A site is a node's server that listens.
type site struct {
	t      testing.TB
	server *server.Server
	base   *url.URL
	rest   *rest.Config
	stop   func() // and wait until it has
}

func (s *site) url(path string, query url.Values) *url.URL {
	u := *s.base
	u.Path, u.RawQuery = path, query.Encode()
	return &u
}

// asked are the options of a stream, as the API server encodes them.
func asked(o remotecommand.StreamOptions, cmd ...string) url.Values {
	query := url.Values{"command": cmd}
	for name, on := range map[string]bool{"input": o.Stdin != nil, "output": o.Stdout != nil, "error": o.Stderr != nil, "tty": o.Tty} {
		if on {
			query.Set(name, "1")
		}
	}
	return query
}

// stream has the streams of a path with one of the clients.
func (s *site) stream(ctx context.Context, client, path string, o remotecommand.StreamOptions, cmd ...string) error {
	executor, err := clients[client](s.rest, s.url(path, asked(o, cmd...)))
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, o)
}

// exec runs a command, and returns its output.
func (s *site) exec(client, stdin string, cmd ...string) (stdout, stderr string, code int, err error) {
	var out, errOut bytes.Buffer
	o := remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut}
	if stdin != "" {
		o.Stdin = strings.NewReader(stdin)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), patience)
	defer cancel()
	err = s.stream(ctx, client, "/exec/default/web/app", o, cmd...)
	if exit, ok := errors.AsType[utilexec.CodeExitError](err); ok {
		return out.String(), errOut.String(), exit.Code, nil
	}
	return out.String(), errOut.String(), 0, err
}

// sizes delivers terminal sizes, once each.
type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	size, ok := <-s
	if !ok {
		return nil
	}
	return &size
}

// dialers are the protocols of port-forward.
var dialers = map[string]func(s *site, u *url.URL) (httpstream.Dialer, error){
	"SPDY": func(s *site, u *url.URL) (httpstream.Dialer, error) {
		transport, upgrader, err := spdy.RoundTripperFor(s.rest)
		if err != nil {
			return nil, err
		}
		return spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, u), nil
	},
	"SPDY in a WebSocket": func(s *site, u *url.URL) (httpstream.Dialer, error) {
		return portforward.NewSPDYOverWebsocketDialerForStreaming(u, s.rest)
	},
}

// forward listens for connections to a port of the pod, until the test or ctx ends.
func (s *site) forward(ctx context.Context, client, path string, port int) (addr string) {
	s.t.Helper()
	dialer, err := dialers[client](s, s.url(path, nil))
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(ctx)
	ready, output := make(chan struct{}), new(locked)
	f, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, ctx.Done(), ready, io.Discard, output)
	require.NoError(s.t, err)
	ended := make(chan error, 1)
	go func() { ended <- f.ForwardPorts() }()
	s.t.Cleanup(func() { cancel(); <-ended })
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		s.t.Fatalf("forward: %v, %s", err, output)
	case <-time.After(patience):
		s.t.Fatal("forward: it is not ready")
	}
	ports, err := f.GetPorts()
	require.NoError(s.t, err)
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(ports[0].Local))
}
