package cluster

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
)

type clientMetrics struct {
	total                    *prometheus.CounterVec
	duration, sent, received *prometheus.HistogramVec
}

func (m *clientMetrics) declare(s *family.Set) {
	const from = "Metrics.Client"
	sizes := []float64{64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216}
	m.total = s.Counters(from, "rest_client_requests_total", "Requests to the API server, by status code, or <error>.", "code", "method", "host")
	m.duration = s.Histograms(from, "rest_client_request_duration_seconds", "Duration until the header of the response.", []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}, "verb", "host")
	m.sent = s.Histograms(from, "rest_client_request_size_bytes", "Size of requests.", sizes, "verb", "host")
	m.received = s.Histograms(from, "rest_client_response_size_bytes", "Size of responses, except those of watches.", sizes, "verb", "host")
}

// Client wraps a transport to count its requests, as an argument of rest.Config.Wrap.
func (c *Metrics) Client(next http.RoundTripper) http.RoundTripper { return &counted{&c.client, next} }

// A counted is a transport whose requests are counted.
type counted struct {
	m    *clientMetrics
	next http.RoundTripper
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t *counted) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t *counted) RoundTrip(req *http.Request) (*http.Response, error) {
	verb, host, begun := method(req.Method), req.URL.Host, time.Now()
	answer, err := t.next.RoundTrip(req)
	t.m.duration.WithLabelValues(verb, host).Observe(time.Since(begun).Seconds())
	if req.ContentLength > 0 {
		t.m.sent.WithLabelValues(verb, host).Observe(float64(req.ContentLength))
	}
	if err != nil {
		t.m.total.WithLabelValues("<error>", verb, host).Inc()
		return answer, err
	}
	t.m.total.WithLabelValues(strconv.Itoa(answer.StatusCode), verb, host).Inc()
	if answer.StatusCode != http.StatusSwitchingProtocols && !req.URL.Query().Has("watch") {
		answer.Body = &measuredBody{ReadCloser: answer.Body, into: t.m.received.WithLabelValues(verb, host)}
	}
	return answer, nil
}

// A measuredBody is a body whose size is reported when it is closed.
type measuredBody struct {
	io.ReadCloser
	size int
	into prometheus.Observer
	done bool
}

func (b *measuredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.size += n
	return n, err
}

func (b *measuredBody) Close() error {
	if !b.done {
		b.done = true
		b.into.Observe(float64(b.size))
	}
	return b.ReadCloser.Close()
}
