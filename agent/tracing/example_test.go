package tracing_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/agent/tracing"
	"github.com/kubeparts/kubeparts/podworker"
)

// A provider passes each span to ended. A program uses the provider of OpenTelemetry's SDK.
type provider struct {
	embedded.TracerProvider
	ended func(*span)
}

func (p provider) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{ended: p.ended} }

type tracer struct {
	embedded.Tracer
	ended func(*span)
}

func (t tracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	cfg := trace.NewSpanStartConfig(options...)
	s := &span{name: name, kind: cfg.SpanKind(), links: cfg.Links(), attributes: map[attribute.Key]string{}, ended: t.ended}
	if !cfg.NewRoot() {
		s.parent = trace.SpanContextFromContext(ctx)
	}
	s.SetAttributes(cfg.Attributes()...)
	return trace.ContextWithSpan(ctx, s), s
}

type span struct {
	noop.Span
	name       string
	kind       trace.SpanKind
	parent     trace.SpanContext
	links      []trace.Link
	attributes map[attribute.Key]string
	status     string
	ended      func(*span)
}

func (s *span) SetAttributes(all ...attribute.KeyValue) {
	for _, a := range all {
		s.attributes[a.Key] = a.Value.String()
	}
}

func (s *span) SetStatus(_ codes.Code, description string) { s.status = description }
func (s *span) End(...trace.SpanEndOption)                 { s.ended(s) }

// The pod workers start a span for each sync.
func Example() {
	tracer := tracing.New(provider{ended: func(s *span) {
		fmt.Println(s.name, s.attributes["k8s.pod"], s.attributes["k8s.pod.update_type"], s.status)
	}})
	workers := podworker.Hooks{Trace: tracer.Pod}

	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}}
	_, end := workers.Trace(context.Background(), podworker.SyncInfo{UID: pod.UID, Pod: pod, State: podworker.Syncing, First: true})
	end(fmt.Errorf("mount volumes: %w", context.DeadlineExceeded))
	_, end = workers.Trace(context.Background(), podworker.SyncInfo{UID: pod.UID, Pod: pod, State: podworker.Syncing})
	end(nil)
	// Output:
	// syncPod default/web create mount volumes: context deadline exceeded
	// syncPod default/web sync
}
