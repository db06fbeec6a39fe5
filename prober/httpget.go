package prober

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podhttp"
	"github.com/kubeparts/kubeparts/runtime"
)

// UserAgent is how the probes of this package call themselves (prober-45,
// prober-56).
const UserAgent = "kube-probe/1.36"

// HTTPGet sends a GET request: an answer of 200 to 399 is success, another is
// failure, and so is none (prober-40 … prober-54). A redirect to another host is
// not followed: it is a success with a warning.
//
// An HTTPGet has no connections of its own: each request opens one and closes it.
// The zero value is ready for use.
type HTTPGet struct{}

// Probe implements [Handler].
func (HTTPGet) Probe(ctx context.Context, t Target) (Outcome, error) {
	action := t.Probe.HTTPGet
	if action == nil {
		return Outcome{}, errors.New("the probe has no httpGet")
	}
	request, err := podhttp.NewRequest(ctx, action, t.Container, t.PodIP, UserAgent) // prober-40 … prober-45
	if err != nil {
		return Outcome{}, err
	}
	protocols, err := protocolsOf(action)
	if err != nil {
		return Outcome{}, err
	}
	// No proxy, no verification, redirects within the host (prober-46, prober-48).
	client := podhttp.NewClient(podhttp.Config{
		MaxBody:   maxOutput,
		Timeout:   t.Timeout, // from the dial to the last byte of the body (prober-47)
		Dial:      Dial,
		Protocols: protocols,
	})
	defer client.Close()
	response, err := client.Do(request)
	if err != nil {
		return Outcome{Result: runtime.ProbeFailure, Output: err.Error()}, nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body) // maxOutput at most
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

// protocolsOf returns the versions of HTTP that a probe uses: HTTP/2 without TLS
// only for the pod itself (prober-54).
func protocolsOf(action *v1.HTTPGetAction) (*http.Protocols, error) {
	if action.Protocol != nil && *action.Protocol == v1.HTTPProtocolHTTP2 && action.Host != "" {
		return nil, fmt.Errorf("protocol %s does not go with a host (%q)", *action.Protocol, action.Host)
	}
	p, err := podhttp.Protocols(action)
	if p == nil && err == nil {
		p = new(http.Protocols)
		p.SetHTTP1(true)
		p.SetHTTP2(true) // a server with TLS may choose it
	}
	return p, err
}
