package streaming

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Client connects to streaming servers. The zero value is ready for use. Safe for
// concurrent use.
type Client struct {
	// TLS is the configuration for https URLs. If nil, the system's roots are used.
	TLS *tls.Config

	// Timeout is the time limit for a server to accept a connection and its
	// streams. Zero means 30 s.
	Timeout time.Duration

	// Hosts are further hosts, as IP addresses or names, that the Client connects
	// to. Loopback addresses and those of this machine are always allowed; URLs of
	// other hosts are errors, as runtime.CheckStreamHost describes.
	Hosts []string
}

// The handshake before the first frame.
const (
	spdy31           = "SPDY/3.1"
	headerProtocol   = "X-Stream-Protocol-Version"
	headerAccepted   = "X-Accepted-Stream-Protocol-Versions"
	commandProtocol  = "v4.channel.k8s.io"
	forwardProtocol  = "portforward.k8s.io"
	maxHandshake     = 256 << 10 // bytes of the response
	maxRefusal       = 4 << 10   // bytes of an error response
	headerStreamType = "streamType"
)

// session connects and calls use to set up its streams, which is limited by the
// timeout. It then calls the function that use returns, without a limit. When ctx is
// done, it closes the connection and returns ctx's error.
func (c *Client) session(ctx context.Context, u *url.URL, protocol string, use func(*mux) (func() error, error)) error {
	if err := runtime.CheckStreamHost(u, c.Hosts); err != nil {
		return fmt.Errorf("connect to streaming server: %w; allow further hosts with Client.Hosts", err)
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	late := fmt.Errorf("streaming server at %s: no response within %v", u.Host, timeout)
	setup, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	why := func(err error) error { // an error of the setup
		if setup.Err() != nil {
			return context.Cause(setup)
		}
		return err
	}
	conn, err := c.dial(setup, u)
	if err != nil {
		return why(fmt.Errorf("connect to streaming server at %s: %w", u.Host, err))
	}
	defer conn.Close()
	unset := context.AfterFunc(setup, func() { conn.Close() })
	reader, err := upgrade(conn, u, protocol)
	if err != nil {
		return why(err)
	}
	m, err := newMux(conn, reader)
	if err != nil {
		return err
	}
	defer func() { m.close(); <-m.ended }()
	cut := context.AfterFunc(setup, m.close)
	run, err := use(m)
	if err != nil {
		return why(err)
	}
	if !unset() || !cut() {
		return why(late)
	}
	cancel()
	defer context.AfterFunc(ctx, m.close)()
	if err := run(); ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// dial connects without a proxy, because streaming servers run on the node.
func (c *Client) dial(ctx context.Context, u *url.URL) (net.Conn, error) {
	port := u.Port()
	if u.Scheme == "https" {
		return (&tls.Dialer{Config: c.TLS}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(port, "443")))
	}
	return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(port, "80")))
}

// upgrade upgrades the connection to SPDY and returns the reader for frames.
func upgrade(conn net.Conn, u *url.URL, protocol string) (io.Reader, error) {
	req := &http.Request{Method: http.MethodPost, URL: u, Host: u.Host, Header: http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {spdy31}, headerProtocol: {protocol},
	}}
	if err := req.Write(conn); err != nil {
		return nil, lost(err)
	}
	limited := &io.LimitedReader{R: conn, N: maxHandshake}
	buffered := bufio.NewReader(limited)
	answer, err := http.ReadResponse(buffered, req)
	if err != nil {
		return nil, fmt.Errorf("streaming server at %s: invalid HTTP response: %w", u.Host, err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols || !strings.EqualFold(answer.Header.Get("Upgrade"), spdy31) {
		why, _ := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
		return nil, fmt.Errorf("streaming server at %s: %s: %s", u.Host, answer.Status, strings.TrimSpace(string(why)))
	}
	if got := answer.Header.Get(headerProtocol); got != protocol {
		return nil, fmt.Errorf("streaming server at %s: protocol %q, expected %s", u.Host, got, protocol)
	}
	limited.N = math.MaxInt64
	return buffered, nil
}
