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

// UserAgent is the user agent of HTTP and gRPC probes.
const UserAgent = "kube-probe/" + runtime.KubernetesMajorMinor

// HTTPGet sends a GET request: a status code of 200 to 399 is a success, any other and no
// response are failures. A redirect to another host is not followed and is a success with a
// warning.
//
// Each request opens a connection and closes it. The zero value is ready to use.
type HTTPGet struct{}

// Probe implements [Handler].
func (HTTPGet) Probe(ctx context.Context, t Target) (Outcome, error) {
	action := t.Probe.HTTPGet
	if action == nil {
		return Outcome{}, errors.New("probe has no httpGet")
	}
	request, err := podhttp.NewRequest(ctx, action, t.Container, t.PodIP, UserAgent)
	if err != nil {
		return Outcome{}, err
	}
	protocols, err := protocolsOf(action)
	if err != nil {
		return Outcome{}, err
	}
	// No proxy, no certificate verification, redirects within the host only (rule prober-46).
	client := podhttp.NewClient(podhttp.Config{
		MaxBody:   maxOutput,
		Timeout:   t.Timeout, // from the dial to the last byte of the body
		Dial:      Dial,
		Protocols: protocols,
	})
	defer client.Close()
	response, err := client.Do(request)
	if err != nil {
		return Outcome{Result: runtime.ProbeFailure, Output: err.Error()}, nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body) // limited by MaxBody
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		// The next try would time out as well.
		return Outcome{Result: runtime.ProbeFailure, Output: fmt.Sprintf("read the body: %v", err)}, nil
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("read the body: %w", err)
	}
	return outcomeOf(response.StatusCode, string(body)), nil
}

// outcomeOf returns the outcome for a response.
func outcomeOf(code int, body string) Outcome {
	switch {
	case code >= 200 && code < 300:
		return Outcome{Result: runtime.ProbeSuccess, Output: body}
	case code >= 300 && code < 400:
		return Outcome{Result: runtime.ProbeSuccess, Warning: true, Output: "Probe terminated redirects, Response body: " + body}
	default:
		return Outcome{Result: runtime.ProbeFailure, Output: fmt.Sprintf("HTTP probe failed with statuscode: %d", code), Detail: body}
	}
}

// protocolsOf returns the HTTP versions of a probe. HTTP/2 without TLS is allowed only for the
// pod IP (rule prober-54).
func protocolsOf(action *v1.HTTPGetAction) (*http.Protocols, error) {
	if action.Protocol != nil && *action.Protocol == v1.HTTPProtocolHTTP2 && action.Host != "" {
		return nil, fmt.Errorf("protocol %s does not support a host (%q)", *action.Protocol, action.Host)
	}
	p, err := podhttp.Protocols(action)
	if p == nil && err == nil {
		p = new(http.Protocols)
		p.SetHTTP1(true)
		p.SetHTTP2(true) // a TLS server may select it
	}
	return p, err
}
