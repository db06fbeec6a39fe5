package remote_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/remote"
)

// A provider records the statuses of spans, by name.
type provider struct {
	noop.TracerProvider
	mu       sync.Mutex
	statuses map[string]string
}

func (p *provider) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{provider: p} }

type tracer struct {
	noop.Tracer
	provider *provider
}

func (t tracer) Start(ctx context.Context, name string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	s := &span{provider: t.provider, name: name}
	return trace.ContextWithSpan(ctx, s), s
}

type span struct {
	noop.Span
	provider *provider
	name     string
}

func (*span) IsRecording() bool { return true }

func (s *span) SetStatus(code codes.Code, text string) {
	s.provider.mu.Lock()
	defer s.provider.mu.Unlock()
	s.provider.statuses[s.name] = code.String() + " " + text
}

// A revealing server has the value of a variable in the text of an error.
type revealing struct{ server }

func (*revealing) StartContainer(context.Context, *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	return nil, errors.New(`exec "hunter2": not found`)
}

func TestSpansHaveNoTextsOfErrors(t *testing.T) {
	skipWindows(t)
	socket := filepath.Join(t.TempDir(), "s")
	stop, err := serve(socket, new(revealing))
	require.NoError(t, err)
	defer stop()
	traced := &provider{statuses: map[string]string{}}
	client, err := remote.Dial(t.Context(), socket, remote.Config{TracerProvider: traced})
	require.NoError(t, err)
	assert.ErrorContains(t, client.Runtime.StartContainer(t.Context(), "c"), "hunter2")
	require.NoError(t, client.Close(t.Context()))
	traced.mu.Lock()
	defer traced.mu.Unlock()
	assert.Equal(t, map[string]string{"runtime.v1.RuntimeService/StartContainer": "Error "}, traced.statuses)
}
