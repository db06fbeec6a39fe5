package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/streamserver"
)

const (
	// proxyTimeout bounds the connection to a streaming server, and its response header.
	proxyTimeout = 30 * time.Second

	// maxErrorBody and maxResponseHeader bound an error response of the streaming server
	// and the header of any response, in bytes.
	maxErrorBody      = 64 << 10
	maxResponseHeader = 64 << 10
)

// A streamProxy connects clients with the streaming server of a runtime. It does not
// interpret the streams. URLs of the runtime are used only if they are of an allowed host.
type streamProxy struct {
	s         *Server
	transport http.RoundTripper
}

func (s *Server) newStreamProxy() *streamProxy {
	return &streamProxy{s: s, transport: &http.Transport{
		// No HTTP proxy and no connection reuse: each URL is valid once.
		DialContext:       (&net.Dialer{Timeout: proxyTimeout}).DialContext,
		DisableKeepAlives: true, DisableCompression: true,
		TLSHandshakeTimeout: proxyTimeout, ResponseHeaderTimeout: proxyTimeout, MaxResponseHeaderBytes: maxResponseHeader,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/2 does not support upgrades
	}}
}

// serve connects the client with the streaming server at u, until one of them closes the
// connection.
func (p *streamProxy) serve(w http.ResponseWriter, r *http.Request, u *url.URL) {
	if err := p.s.checkHost(u); err != nil {
		p.s.respondError(w, r, err)
		return
	}
	client := streamserver.NewClient(w, r, p.s.streams().Idle)
	defer client.End()
	proxy := httputil.ReverseProxy{
		Transport: p.transport,
		Rewrite: func(to *httputil.ProxyRequest) {
			to.Out.URL, to.Out.Host = u, u.Host
			to.Out.Header = streamHeaders(to.Out.Header)
			to.Out.Body, to.Out.ContentLength = nil, 0
		},
		ModifyResponse: func(response *http.Response) error {
			switch {
			case response.StatusCode == http.StatusSwitchingProtocols:
			case response.StatusCode < http.StatusBadRequest:
				return fmt.Errorf("unexpected status %s", response.Status)
			default:
				response.Body = struct {
					io.Reader
					io.Closer
				}{io.LimitReader(response.Body, maxErrorBody), response.Body}
				response.Header = http.Header{"Content-Type": response.Header["Content-Type"], "X-Content-Type-Options": {"nosniff"}}
				response.ContentLength = -1
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if errors.Is(err, context.Canceled) {
				return // the client has closed the connection
			}
			p.s.respondError(w, r, fmt.Errorf("server: streaming server of the runtime at %s: %w", u.Host, withoutURL(err)))
		},
		ErrorLog: slog.NewLogLogger(p.s.log.Handler(), slog.LevelDebug),
	}
	proxy.ServeHTTP(client, r.WithContext(client.Context()))
}

// streamHeaders returns the headers that the protocols require. The credentials of the
// client must not be sent to the runtime.
func streamHeaders(from http.Header) http.Header {
	to := http.Header{}
	for name, values := range from {
		switch {
		case name == "Connection", name == "Upgrade", name == "X-Stream-Protocol-Version", name == "Origin", strings.HasPrefix(name, "Sec-Websocket-"):
			to[name] = values
		}
	}
	return to
}

// withoutURL removes the URL, which is a secret, from an error of net/http.
func withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// checkHost returns an error if the host of u is not allowed.
func (s *Server) checkHost(u *url.URL) error {
	if err := runtime.CheckStreamHost(u, s.cfg.Containers.StreamHosts); err != nil {
		return fmt.Errorf("server: %w; Config.Containers.StreamHosts allows further hosts", err)
	}
	return nil
}
