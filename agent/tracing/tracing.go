package tracing

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/kubeparts/kubeparts/logs"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// scope is the name of the instrumentation scope of all spans.
const scope = "github.com/kubeparts/kubeparts/agent/tracing"

// A Tracer starts the spans of an agent. New constructs it.
type Tracer struct{ tracer trace.Tracer }

// New returns a Tracer whose spans provider creates, and exports or drops.
func New(provider trace.TracerProvider) *Tracer { return &Tracer{provider.Tracer(scope)} }

// Pod implements podworker.Hooks.Trace.
func (t *Tracer) Pod(ctx context.Context, call podworker.SyncInfo) (traced context.Context, end func(error)) {
	attributes := []attribute.KeyValue{semconv.K8SPodUID(string(call.UID))}
	if call.Pod != nil {
		attributes = append(attributes,
			attribute.String("k8s.pod", call.Pod.Namespace+"/"+call.Pod.Name),
			semconv.K8SPodName(call.Pod.Name), semconv.K8SNamespaceName(call.Pod.Namespace))
	}
	name := "syncPod"
	switch {
	case call.State == podworker.Terminating:
		name = "syncTerminatingPod"
	case call.State == podworker.Cleaning:
		name = "syncTerminatedPod"
	case call.First:
		attributes = append(attributes, attribute.String("k8s.pod.update_type", "create"))
	default:
		attributes = append(attributes, attribute.String("k8s.pod.update_type", "sync"))
	}
	return t.start(ctx, name, attributes...)
}

// ImageGC implements imagegc.Hooks.Trace.
func (t *Tracer) ImageGC(ctx context.Context) (traced context.Context, end func(error)) {
	return t.start(ctx, "Images/GarbageCollect")
}

// Garbage returns next with a span for each call.
func (t *Tracer) Garbage(next runtime.GarbageCollector) runtime.GarbageCollector {
	return garbageCollector{next, t}
}

type garbageCollector struct {
	next   runtime.GarbageCollector
	tracer *Tracer
}

// CollectGarbage implements runtime.GarbageCollector.
func (g garbageCollector) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	ctx, end := g.tracer.start(ctx, "Containers/GarbageCollect")
	err := g.next.CollectGarbage(ctx, policy)
	end(err)
	return err
}

// start starts a span. end ends it with the status of err.
func (t *Tracer) start(ctx context.Context, name string, attributes ...attribute.KeyValue) (traced context.Context, end func(error)) {
	ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(attributes...))
	return ctx, func(err error) {
		if err != nil {
			text := logs.Text(err.Error(), maxValue)
			span.RecordError(errors.New(text), trace.WithAttributes(semconv.ExceptionType(fmt.Sprintf("%T", err))))
			span.SetStatus(codes.Error, text)
		}
		span.End()
	}
}
