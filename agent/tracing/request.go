package tracing

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/kubeparts/kubeparts/logs"
)

// Request implements server.Config.Trace. Clients of a server of type readonly do not
// determine whether the request is sampled.
func (t *Tracer) Request(r *http.Request, route, serverType string) (traced context.Context, end func(code int)) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(requestAttributes(r, route)...)}
	if serverType == "readonly" {
		if remote := trace.SpanContextFromContext(ctx); remote.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: remote}))
		}
		options = append(options, trace.WithNewRoot())
	}
	name := route
	if name == "" {
		name = method(r) + " route not found"
	}
	ctx, span := t.tracer.Start(ctx, name, options...)
	return ctx, func(code int) {
		span.SetAttributes(semconv.HTTPResponseStatusCode(code))
		if code >= 500 {
			span.SetStatus(codes.Error, fmt.Sprint(code, " ", http.StatusText(code)))
		}
		span.End()
	}
}

// requestAttributes returns the attributes of a request. Its query is none of them: it may
// contain a command.
func requestAttributes(r *http.Request, route string) []attribute.KeyValue {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	attributes := []attribute.KeyValue{
		semconv.ServerAddress("kubelet"), semconv.HTTPRequestMethodKey.String(method(r)), semconv.URLScheme(scheme), semconv.URLPath(logs.Text(r.URL.Path, maxValue)),
		semconv.NetworkProtocolVersion(fmt.Sprintf("%d.%d", r.ProtoMajor, r.ProtoMinor)),
	}
	if route != "" {
		attributes = append(attributes, semconv.HTTPRoute(route))
	}
	if agent := r.UserAgent(); agent != "" {
		attributes = append(attributes, semconv.UserAgentOriginal(logs.Text(agent, maxValue)))
	}
	if host, port, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		attributes = append(attributes, semconv.NetworkPeerAddress(host))
		if n, err := strconv.Atoi(port); err == nil {
			attributes = append(attributes, semconv.NetworkPeerPort(n))
		}
	}
	return attributes
}

// method returns the method of a request; _OTHER if HTTP does not define it.
func method(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return r.Method
	}
	return "_OTHER"
}

// maxValue is the maximum size in bytes of an attribute or of the text of an error. Spans require
// valid UTF-8.
const maxValue = 1 << 10
