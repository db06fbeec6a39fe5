package podhttp

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// maxRequests is the number of requests that a client sends because of
	// redirects, the first included.
	maxRequests = 10

	// maxHeader bounds the headers of a response, in bytes.
	maxHeader = 64 << 10
)

// A Config describes a client.
type Config struct {
	// MaxBody is how many bytes of a response's body can be read; the body ends
	// there. Zero means an empty body.
	MaxBody int64

	// Timeout bounds a request from the dial to the last byte of the body,
	// redirects included. Zero means that only the request's context does.
	Timeout time.Duration

	// Dial opens connections. If nil, a net.Dialer is used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Protocols are the versions of HTTP to use, as in http.Transport.
	Protocols *http.Protocols
}

// A Client sends requests. It has no connections of its own: each request opens
// one and closes it with the response's body. Safe for concurrent use.
type Client struct {
	http    http.Client
	maxBody int64
}

// NewClient returns a client for requests of [NewRequest]. A redirect to another
// host is not followed: it is the response. The certificate of a server is not
// verified, because a pod has no name that it could be verified for.
func NewClient(cfg Config) *Client {
	return &Client{maxBody: cfg.MaxBody, http: http.Client{
		Transport: &http.Transport{
			DialContext:            cfg.Dial,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeader,
			Protocols:              cfg.Protocols,
			TLSClientConfig:        &tls.Config{InsecureSkipVerify: true},
		},
		CheckRedirect: withinHost,
		Timeout:       cfg.Timeout,
	}}
}

// Do sends a request. The caller must close the response's body.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	response, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, c.maxBody), response.Body}
	return response, nil
}

// Close closes the connections of requests that have failed.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// withinHost permits redirects to the host of the first request, whatever the port
// and scheme, so that a pod cannot make the agent send requests to others.
func withinHost(next *http.Request, before []*http.Request) error {
	if next.URL.Hostname() != before[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(before) >= maxRequests {
		return fmt.Errorf("stopped after %d redirects", maxRequests) // Kubernetes' words
	}
	return nil
}
