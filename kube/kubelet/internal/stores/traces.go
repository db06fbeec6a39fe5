package stores

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/util/validation/field"
	tracingapi "k8s.io/component-base/tracing/api/v1"

	"github.com/kubeparts/kubeparts/agent/tracing"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/logs"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// traces add spans to the operations and connections of the subsystems. The zero value adds none.
type traces struct {
	Provider trace.TracerProvider // nil: nothing is traced
	tracer   *tracing.Tracer
	shutdown func(context.Context) error // nil: the caller's provider
}

// newTraces returns traces with the provider of the Config, or with one that exports to the
// collector of the Configuration.
func newTraces(ctx context.Context, b Base) (traces, error) {
	if p := b.Config.Host.TracerProvider; p != nil {
		return traces{Provider: p, tracer: tracing.New(p)}, nil
	}
	if b.Configuration.Tracing == nil {
		return traces{}, nil
	}
	if err := tracingapi.ValidateTracingConfiguration(b.Configuration.Tracing, nil, field.NewPath("tracing")).ToAggregate(); err != nil {
		return traces{}, err
	}
	options := []otlptracegrpc.Option{otlptracegrpc.WithInsecure()}
	if endpoint := b.Configuration.Tracing.Endpoint; endpoint != nil {
		options = append(options, otlptracegrpc.WithEndpoint(*endpoint))
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return traces{}, fmt.Errorf("tracing.endpoint: %w", err)
	}
	p := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&LoggedExporter{SpanExporter: BoundedExporter{exporter}, Logger: b.Logger}),
		sdktrace.WithSampler(Sampler(Deref(b.Configuration.Tracing.SamplingRatePerMillion))),
		sdktrace.WithResource(resource.NewWithAttributes(semconv.SchemaURL, semconv.ServiceName("kubelet"), semconv.HostName(b.Config.NodeName))),
	)
	return traces{Provider: p, tracer: tracing.New(p), shutdown: p.Shutdown}, nil
}

// Sampler exports the spans of traces that a client samples and, of those that begin here,
// the given part.
func Sampler(perMillion int32) sdktrace.Sampler {
	if perMillion == 0 {
		return sdktrace.ParentBased(sdktrace.NeverSample())
	}
	return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(float64(perMillion) / 1e6))
}

// close exports the last spans.
func (t traces) close() error {
	if t.shutdown == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), FlushTimeout)
	defer cancel()
	_ = t.shutdown(ctx) // spans that are lost are logged, and not an error of the kubelet
	return nil
}

func (t traces) Workers() (h podworker.Hooks) {
	if t.tracer != nil {
		h.Trace = t.tracer.Pod
	}
	return h
}

func (t traces) Images() (h imagegc.Hooks) {
	if t.tracer != nil {
		h.Trace = t.tracer.ImageGC
	}
	return h
}

func (t traces) Server(c *server.Config) {
	if t.tracer != nil {
		c.Trace = t.tracer.Request
	}
}

func (t traces) Garbage(next runtime.GarbageCollector) runtime.GarbageCollector {
	if t.tracer == nil {
		return next
	}
	return t.tracer.Garbage(next)
}

// client adds a span for each request to the API server, which receives its context.
func (t traces) client(wrap func(http.RoundTripper) http.RoundTripper) func(http.RoundTripper) http.RoundTripper {
	if t.Provider == nil {
		return wrap
	}
	return func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(wrap(next), otelhttp.WithTracerProvider(t.Provider), otelhttp.WithPropagators(propagation.TraceContext{}))
	}
}

// A LoggedExporter logs when spans can no longer be exported, and when they can again.
// OpenTelemetry passes such errors to a global handler.
type LoggedExporter struct {
	sdktrace.SpanExporter
	Logger *slog.Logger
	failed atomic.Bool
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *LoggedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch before := e.failed.Swap(err != nil); {
	case err != nil && !before:
		e.Logger.Warn("Failed to export traces; spans are lost until the collector is available", "spans", len(spans), "err", err)
	case err == nil && before:
		e.Logger.Info("Exporting traces again")
	}
	return nil
}

// A BoundedExporter limits the texts of spans, which contain names and errors of clients, pods and
// runtimes: a collector may discard a whole batch for a text that is not valid UTF-8.
type BoundedExporter struct{ sdktrace.SpanExporter }

func (e BoundedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	limited := make([]sdktrace.ReadOnlySpan, 0, len(spans))
	for _, s := range spans {
		limited = append(limited, boundedSpan{s})
	}
	return e.SpanExporter.ExportSpans(ctx, limited)
}

// maxSpanText is the maximum size in bytes of a text of a span.
const maxSpanText = 1 << 10

type boundedSpan struct{ sdktrace.ReadOnlySpan }

func (s boundedSpan) Name() string { return logs.Text(s.ReadOnlySpan.Name(), maxSpanText) }

func (s boundedSpan) Status() sdktrace.Status {
	status := s.ReadOnlySpan.Status()
	status.Description = logs.Text(status.Description, maxSpanText)
	return status
}

func (s boundedSpan) Attributes() []attribute.KeyValue {
	return boundedAttributes(s.ReadOnlySpan.Attributes())
}

func (s boundedSpan) Events() []sdktrace.Event {
	events := slices.Clone(s.ReadOnlySpan.Events())
	for i := range events {
		events[i].Attributes = boundedAttributes(events[i].Attributes)
	}
	return events
}

func boundedAttributes(all []attribute.KeyValue) []attribute.KeyValue {
	all = slices.Clone(all)
	for i, a := range all {
		if a.Value.Type() == attribute.STRING {
			all[i].Value = attribute.StringValue(logs.Text(a.Value.AsString(), maxSpanText))
		}
	}
	return all
}
