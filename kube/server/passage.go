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
	// passagePatience is how long a runtime's server may take to answer.
	passagePatience = 30 * time.Second

	// maxRefused and maxAnswered bound what it may answer instead of streams, and the
	// headers of any answer, in bytes.
	maxRefused  = 64 << 10
	maxAnswered = 64 << 10
)

// A passage connects clients with the streaming server of a runtime, where nothing of
// what they say is looked at. What the runtime names as the address is believed only
// where it is on this machine.
type passage struct {
	s         *Server
	transport http.RoundTripper
}

func (s *Server) newPassage() *passage {
	return &passage{s: s, transport: &http.Transport{
		// No proxy is asked, and no connection is used twice: a URL is good for one.
		DialContext:       (&net.Dialer{Timeout: passagePatience}).DialContext,
		DisableKeepAlives: true, DisableCompression: true,
		TLSHandshakeTimeout: passagePatience, ResponseHeaderTimeout: passagePatience, MaxResponseHeaderBytes: maxAnswered,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/2 has no upgrade
	}}
}

// serve passes on what a client and the server at u say, until one of them has gone.
func (p *passage) serve(w http.ResponseWriter, r *http.Request, u *url.URL) {
	if err := p.s.here(u); err != nil {
		p.s.isRefused(w, r, err)
		return
	}
	client := streamserver.NewClient(w, r, p.s.streamLimits().Idle)
	defer client.End()
	proxy := httputil.ReverseProxy{
		Transport: p.transport,
		Rewrite: func(to *httputil.ProxyRequest) {
			to.Out.URL, to.Out.Host = u, u.Host
			to.Out.Header = passedOn(to.Out.Header)
			to.Out.Body, to.Out.ContentLength = nil, 0
		},
		ModifyResponse: func(answer *http.Response) error {
			switch {
			case answer.StatusCode == http.StatusSwitchingProtocols:
			case answer.StatusCode < http.StatusBadRequest:
				return fmt.Errorf("it answered %s", answer.Status)
			default:
				answer.Body = struct {
					io.Reader
					io.Closer
				}{io.LimitReader(answer.Body, maxRefused), answer.Body}
				answer.Header = http.Header{"Content-Type": answer.Header["Content-Type"], "X-Content-Type-Options": {"nosniff"}}
				answer.ContentLength = -1
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if errors.Is(err, context.Canceled) {
				return // the client has gone
			}
			p.s.isRefused(w, r, fmt.Errorf("server: the streaming server of the runtime at %s: %w", u.Host, withoutURL(err)))
		},
		ErrorLog: slog.NewLogLogger(p.s.log.Handler(), slog.LevelDebug),
	}
	proxy.ServeHTTP(client, r.WithContext(client.Context()))
}

// passedOn are the headers that the protocols need. What the client shows to say who it
// is, is not for the runtime.
func passedOn(from http.Header) http.Header {
	to := http.Header{}
	for name, values := range from {
		switch {
		case name == "Connection", name == "Upgrade", name == "X-Stream-Protocol-Version", name == "Origin", strings.HasPrefix(name, "Sec-Websocket-"):
			to[name] = values
		}
	}
	return to
}

// withoutURL takes the URL, which is a secret, from an error of net/http.
func withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// here refuses a URL of another machine.
func (s *Server) here(u *url.URL) error {
	if err := runtime.CheckStreamHost(u, s.cfg.StreamHosts); err != nil {
		return fmt.Errorf("server: %w; Config.StreamHosts names further hosts", err)
	}
	return nil
}
