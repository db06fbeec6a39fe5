package tracing_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/agent/tracing"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// record returns a Tracer and its ended spans.
func record() (*tracing.Tracer, *[]*span) {
	var spans []*span
	return tracing.New(provider{ended: func(s *span) { spans = append(spans, s) }}), &spans
}

func TestPodSpansHaveTheNamesAndAttributesOfTheKubelet(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "1"}}
	identity := map[attribute.Key]string{"k8s.pod.uid": "1", "k8s.pod": "ns/web", "k8s.pod.name": "web", "k8s.namespace.name": "ns"}
	with := func(more ...string) map[attribute.Key]string {
		all := map[attribute.Key]string{"k8s.pod.update_type": strings.Join(more, "")}
		for k, v := range identity {
			all[k] = v
		}
		return all
	}
	for name, tc := range map[string]struct {
		call podworker.SyncInfo
		span string
		want map[attribute.Key]string
	}{
		"first sync": {podworker.SyncInfo{UID: "1", Pod: pod, State: podworker.Syncing, First: true}, "syncPod", with("create")},
		"later sync": {podworker.SyncInfo{UID: "1", Pod: pod, State: podworker.Syncing}, "syncPod", with("sync")},
		"terminate":  {podworker.SyncInfo{UID: "1", Pod: pod, State: podworker.Terminating}, "syncTerminatingPod", identity},
		"orphan":     {podworker.SyncInfo{UID: "1", State: podworker.Terminating, First: true}, "syncTerminatingPod", map[attribute.Key]string{"k8s.pod.uid": "1"}},
		"clean up":   {podworker.SyncInfo{UID: "1", Pod: pod, State: podworker.Cleaning}, "syncTerminatedPod", identity},
	} {
		tracer, spans := record()
		ctx, end := tracer.Pod(t.Context(), tc.call)
		assert.Empty(t, *spans, name)
		end(nil)
		require.Len(t, *spans, 1, name)
		assert.Same(t, (*spans)[0], trace.SpanFromContext(ctx), name)
		assert.Equal(t, tc.span, (*spans)[0].name, name)
		assert.Equal(t, tc.want, (*spans)[0].attributes, name)
		assert.Empty(t, (*spans)[0].status, name)
	}
}

// A collector fails, and records the span of its context.
type collector struct{ span trace.Span }

func (c *collector) CollectGarbage(ctx context.Context, _ runtime.GCPolicy) error {
	c.span = trace.SpanFromContext(ctx)
	return errors.New("busy")
}

func TestGarbageCollectionHasASpan(t *testing.T) {
	tracer, spans := record()
	var c collector
	require.EqualError(t, tracer.Garbage(&c).CollectGarbage(t.Context(), runtime.GCPolicy{}), "busy")
	_, end := tracer.ImageGC(t.Context())
	end(nil)
	require.Len(t, *spans, 2)
	assert.Same(t, (*spans)[0], c.span)
	assert.Equal(t, "Containers/GarbageCollect", (*spans)[0].name)
	assert.Equal(t, "busy", (*spans)[0].status)
	assert.Equal(t, "Images/GarbageCollect", (*spans)[1].name)
}

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestARequestContinuesTheTraceOfAnAuthorizedClient(t *testing.T) {
	for _, tc := range []struct {
		serverType, header string
		parent, link       string
	}{
		{"readwrite", traceparent, "b7ad6b7169203331", ""},
		{"readwrite", "", "0000000000000000", ""},
		{"readwrite", "00-invalid", "0000000000000000", ""},
		{"readonly", traceparent, "0000000000000000", "b7ad6b7169203331"},
		{"readonly", "", "0000000000000000", ""},
	} {
		tracer, spans := record()
		r := httptest.NewRequest("GET", "/pods", nil)
		r.Header.Set("Traceparent", tc.header)
		_, end := tracer.Request(r, "/pods", tc.serverType)
		end(200)
		require.Len(t, *spans, 1)
		s := (*spans)[0]
		assert.Equal(t, tc.parent, s.parent.SpanID().String(), "%+v", tc)
		assert.Equal(t, trace.SpanKindServer, s.kind)
		if tc.link == "" {
			assert.Empty(t, s.links, "%+v", tc)
		} else if assert.Len(t, s.links, 1) {
			assert.Equal(t, tc.link, s.links[0].SpanContext.SpanID().String())
		}
	}
}

func TestAttributesOfARequest(t *testing.T) {
	tracer, spans := record()
	r := httptest.NewRequest("POST", "https://n1:10250/exec/ns/web/main?command=cat&command=/secret", nil)
	r.Header.Set("User-Agent", "kubectl/1.37")
	r.RemoteAddr = "10.0.0.1:4000"
	_, end := tracer.Request(r, "/exec/{namespace}/{pod}/{container}", "readwrite")
	end(101)
	s := (*spans)[0]
	assert.Equal(t, "/exec/{namespace}/{pod}/{container}", s.name)
	assert.Equal(t, map[attribute.Key]string{
		"server.address": "kubelet", "http.request.method": "POST", "url.scheme": "https", "url.path": "/exec/ns/web/main", "network.protocol.version": "1.1",
		"http.route": "/exec/{namespace}/{pod}/{container}", "user_agent.original": "kubectl/1.37", "network.peer.address": "10.0.0.1",
		"network.peer.port": "4000", "http.response.status_code": "101",
	}, s.attributes, "without the command")
	assert.Empty(t, s.status)

	// Values that a client chooses are bounded and valid.
	r = httptest.NewRequest("BREW", "/", nil)
	r.URL.Path = "/" + strings.Repeat("ä", 1<<16) + "\xff"
	r.Header.Set("User-Agent", "\xff"+strings.Repeat("a", 1<<16))
	_, end = tracer.Request(r, "", "readwrite")
	end(500)
	s = (*spans)[1]
	assert.Equal(t, "_OTHER route not found", s.name)
	assert.Equal(t, "500 Internal Server Error", s.status)
	assert.NotContains(t, s.attributes, attribute.Key("http.route"))
	for _, key := range []attribute.Key{"url.path", "user_agent.original"} {
		assert.LessOrEqual(t, len(s.attributes[key]), 1<<10, key)
		assert.NotContains(t, s.attributes[key], "�")
	}
}
