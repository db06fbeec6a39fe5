package kubelet

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

// A traceCollector is an OTLP collector. It records the names of spans by trace, and the
// resources.
type traceCollector struct {
	collector.UnimplementedTraceServiceServer
	mu        sync.Mutex
	spans     map[string][]string
	resources map[string]bool
}

func (c *traceCollector) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range req.ResourceSpans {
		var attributes []string
		for _, a := range r.Resource.Attributes {
			attributes = append(attributes, a.Key+"="+a.Value.GetStringValue())
		}
		c.resources[strings.Join(attributes, " ")] = true
		for _, s := range r.ScopeSpans {
			for _, span := range s.Spans {
				c.spans[string(span.TraceId)] = append(c.spans[string(span.TraceId)], span.Name)
			}
		}
	}
	return new(collector.ExportTraceServiceResponse), nil
}

// collect serves a traceCollector until the test ends, and returns its address.
func collect(t *testing.T) (*traceCollector, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &traceCollector{spans: map[string][]string{}, resources: map[string]bool{}}
	s := grpc.NewServer()
	collector.RegisterTraceServiceServer(s, c)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return c, l.Addr().String()
}

// Without sampling, only the traces that clients of the API sample are exported.
func TestTracesAreExportedToTheCollectorOfTheConfiguration(t *testing.T) {
	got, addr := collect(t)
	cfg := withAPI(t, -1)
	cfg.Configuration.Tracing = decode(t, "tracing: {endpoint: '"+addr+"', samplingRatePerMillion: 0}\n").Tracing
	k, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- k.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for _, flags := range []string{"00", "01"} {
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			req, err := http.NewRequest("GET", "https://"+k.APIAddr().String()+"/pods", nil)
			require.NoError(t, err)
			req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"+flags)
			answer, err := client.Do(req)
			require.NoError(t, err)
			_ = answer.Body.Close()
			assert.Equal(t, 200, answer.StatusCode)
		}, 90*time.Second, 20*time.Millisecond)
	}
	cancel()
	require.NoError(t, <-ran)
	got.mu.Lock()
	defer got.mu.Unlock()
	const trace = "\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c"
	assert.Equal(t, map[string][]string{trace: {"/pods"}}, got.spans, "exported when the kubelet stops")
	assert.Equal(t, map[string]bool{"host.name=n1 service.name=kubelet": true}, got.resources)
}

func TestInvalidTracingIsAnError(t *testing.T) {
	for lines, want := range map[string]string{
		"tracing: {samplingRatePerMillion: -1}":      "tracing.samplingRatePerMillion: Invalid value: -1",
		"tracing: {samplingRatePerMillion: 1000001}": "tracing.samplingRatePerMillion: Invalid value: 1000001",
		"tracing: {endpoint: 'http://collector'}":    "tracing.endpoint: Invalid value",
	} {
		_, err := Open(t.Context(), runnable(t, lines+"\n"))
		assert.ErrorContains(t, err, want)
	}
}

func TestTheSamplerHonorsTheRate(t *testing.T) {
	for perMillion, want := range map[int32]string{
		0:         "AlwaysOffSampler",
		250_000:   "TraceIDRatioBased{0.25}",
		1_000_000: "TraceIDRatioBased{1}",
	} {
		assert.Contains(t, stores.Sampler(perMillion).Description(), "ParentBased{root:"+want)
	}
}

// A failingExporter fails while err is set.
type failingExporter struct{ err error }

func (e *failingExporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return e.err }
func (e *failingExporter) Shutdown(context.Context) error                             { return nil }

func TestFailedExportsAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	f := new(failingExporter)
	e := &stores.LoggedExporter{SpanExporter: f, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	lines := func() string {
		defer log.Reset()
		return log.String()
	}
	for _, step := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("connection refused"), "level=WARN msg=\"Failed to export traces; spans are lost until the collector is available\" spans=0 err=\"connection refused\""},
		{errors.New("connection refused"), ""},
		{nil, "level=INFO msg=\"Exporting traces again\""},
		{nil, ""},
	} {
		f.err = step.err
		require.NoError(t, e.ExportSpans(t.Context(), nil), "OpenTelemetry would write it to stderr")
		got := lines()
		assert.Contains(t, got, step.want)
		if step.want == "" {
			assert.Empty(t, got)
		}
	}
}

// exported keeps the spans of an export.
type exported struct {
	failingExporter
	spans []sdktrace.ReadOnlySpan
}

func (e *exported) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.spans = append(e.spans, spans...)
	return nil
}

func TestTheTextsOfSpansAreBoundedAndValid(t *testing.T) {
	out := new(exported)
	p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(stores.BoundedExporter{SpanExporter: out}))
	long := "begin \xff" + strings.Repeat("x", 1<<20)
	_, span := p.Tracer("test").Start(t.Context(), long)
	span.SetAttributes(attribute.String("path", long))
	span.RecordError(errors.New(long))
	span.SetStatus(codes.Error, long)
	span.End()
	require.Len(t, out.spans, 1)
	s := out.spans[0]
	texts := []string{s.Name(), s.Status().Description, s.Attributes()[0].Value.AsString()}
	for _, a := range s.Events()[0].Attributes {
		texts = append(texts, a.Value.AsString())
	}
	for _, text := range texts {
		assert.LessOrEqual(t, len(text), 1<<10)
		assert.True(t, utf8.ValidString(text))
	}
}
