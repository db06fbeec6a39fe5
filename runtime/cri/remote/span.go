package remote

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
)

// A terseProvider creates spans without the texts of errors: those of a runtime contain commands and values of
// variables, such as the name of a program that does not exist. The code of the error is an attribute.
type terseProvider struct {
	embedded.TracerProvider
	provider trace.TracerProvider
}

func (p terseProvider) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	return terseTracer{tracer: p.provider.Tracer(name, options...)}
}

type terseTracer struct {
	embedded.Tracer
	tracer trace.Tracer
}

func (t terseTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	ctx, span := t.tracer.Start(ctx, name, options...)
	span = terseSpan{span}
	return trace.ContextWithSpan(ctx, span), span
}

type terseSpan struct{ trace.Span }

func (s terseSpan) SetStatus(code codes.Code, _ string) { s.Span.SetStatus(code, "") }

// RecordError records nothing: the text of the error may contain the same.
func (s terseSpan) RecordError(error, ...trace.EventOption) {}
