package prober

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// UserAgent is how the probes of this package call themselves (prober-45,
// prober-56).
const UserAgent = "kube-probe/1.36"

// maxRedirects is how many times a request is sent on (prober-48).
const maxRedirects = 10

// maxHeader bounds the headers of an answer, in bytes. Nobody reads them.
const maxHeader = 64 << 10

// HTTPGet sends a GET request: an answer of 200 to 399 is success, another is
// failure, and so is none (prober-40 … prober-54). A redirect to another host is
// not followed: it is a success with a warning.
//
// An HTTPGet has no connections of its own: each request opens one and closes it.
// The zero value is ready for use.
type HTTPGet struct{}

// Probe implements [Handler].
func (HTTPGet) Probe(ctx context.Context, t Target) (Outcome, error) {
	request, err := newRequest(ctx, t)
	if err != nil {
		return Outcome{}, err
	}
	protocols, err := protocolsOf(t.Probe.HTTPGet)
	if err != nil {
		return Outcome{}, err
	}
	transport := &http.Transport{
		DialContext:            Dial,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		Protocols:              protocols,
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, // the pod has no name that could be verified (prober-46)
	}
	defer transport.CloseIdleConnections()
	client := http.Client{
		Transport:     transport,
		CheckRedirect: withinHost,
		Timeout:       t.Timeout, // from the dial to the last byte of the body (prober-47)
	}
	response, err := client.Do(request)
	if err != nil {
		return Outcome{Result: runtime.ProbeFailure, Output: err.Error()}, nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxOutput))
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		// As slow as one that says nothing, and it would be the next time.
		return Outcome{Result: runtime.ProbeFailure, Output: fmt.Sprintf("read the body: %v", err)}, nil
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("read the body: %w", err)
	}
	return judge(response.StatusCode, string(body)), nil
}

// judge says what an answer means (prober-50, prober-51).
func judge(code int, body string) Outcome {
	switch {
	case code >= 200 && code < 300:
		return Outcome{Result: runtime.ProbeSuccess, Output: body}
	case code >= 300 && code < 400:
		return Outcome{Result: runtime.ProbeSuccess, Warning: true, Output: "Probe terminated redirects, Response body: " + body}
	default:
		return Outcome{Result: runtime.ProbeFailure, Output: fmt.Sprintf("HTTP probe failed with statuscode: %d", code), Detail: body}
	}
}

// newRequest makes the request of a probe (prober-40 … prober-45).
func newRequest(ctx context.Context, t Target) (*http.Request, error) {
	action := t.Probe.HTTPGet
	if action == nil {
		return nil, errors.New("the probe has no httpGet")
	}
	to, err := address(action.Host, action.Port, t)
	if err != nil {
		return nil, err
	}
	scheme := strings.ToLower(string(action.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	u := url.URL{Scheme: scheme, Host: to, Path: action.Path}
	// A path may have a query; what is no URL is a path as it stands. (One with
	// a colon, as in mailto:me, would be taken for something else.)
	if parsed, err := url.Parse(action.Path); err == nil && parsed.Opaque == "" {
		u.Path, u.RawPath, u.RawQuery = parsed.Path, parsed.RawPath, parsed.RawQuery
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header, request.Host = headers(action.HTTPHeaders)
	return request, nil
}

// headers returns the headers of a probe, and the host that it asks for, "" if
// that of its address (prober-44, prober-45).
func headers(asked []v1.HTTPHeader) (http.Header, string) {
	h := http.Header{}
	for _, header := range asked {
		h.Add(header.Name, header.Value)
	}
	host := h.Get("Host")
	h.Del("Host")
	if _, ok := h["User-Agent"]; !ok {
		h.Set("User-Agent", UserAgent)
	}
	if accept, ok := h["Accept"]; !ok {
		h.Set("Accept", "*/*")
	} else if accept[0] == "" {
		h.Del("Accept")
	}
	return h, host
}

// protocolsOf returns what a request may be sent as. HTTP/2 goes without TLS and
// without asking whether the server has it, and to the pod only (prober-54).
func protocolsOf(action *v1.HTTPGetAction) (*http.Protocols, error) {
	p := new(http.Protocols)
	switch {
	case action.Protocol == nil:
		p.SetHTTP1(true)
		p.SetHTTP2(true) // what a server with TLS may choose
	case *action.Protocol == v1.HTTPProtocolHTTP1:
		p.SetHTTP1(true)
	case *action.Protocol != v1.HTTPProtocolHTTP2:
		return nil, fmt.Errorf("unknown protocol %q", *action.Protocol)
	case action.Host != "":
		return nil, fmt.Errorf("protocol %s does not go with a host (%q)", *action.Protocol, action.Host)
	case strings.EqualFold(string(action.Scheme), string(v1.URISchemeHTTPS)):
		return nil, fmt.Errorf("protocol %s does not go with scheme %s", *action.Protocol, action.Scheme)
	default:
		p.SetUnencryptedHTTP2(true)
	}
	return p, nil
}

// withinHost lets a request be sent on to where its first one went, whatever the
// port and scheme, so that nobody can make the agent ask others (prober-48).
func withinHost(next *http.Request, before []*http.Request) error {
	if next.URL.Hostname() != before[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(before) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}
