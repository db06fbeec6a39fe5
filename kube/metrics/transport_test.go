package metrics_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/metrics"
)

// answers is an API server that answers every request in the same way.
type answers struct{}

func (answers) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	if req.URL.Path == "/broken" {
		return nil, errBroken
	}
	return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(body("an answer")), Request: req}, nil
}

func body(text string) io.Reader { return strings.NewReader(text) }

func TestRequestsToTheAPIServerAreCountedByTheNodeThatMakesThem(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	client := http.Client{Transport: w.cluster.Client(answers{})}
	for range 2 {
		answer, err := client.Post("http://api:6443/x", "text/plain", body("hello"))
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		assert.Equal(t, "an answer", string(text))
		require.NoError(t, answer.Body.Close())
		require.NoError(t, answer.Body.Close(), "a second time")
	}
	_, err := client.Get("http://api:6443/broken")
	require.ErrorIs(t, err, errBroken)
	answer, err := client.Get("http://api:6443/x?watch=true")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())

	assert.Equal(t, []string{
		`rest_client_requests_total{code="201",host="api:6443",method="GET"} 1`,
		`rest_client_requests_total{code="201",host="api:6443",method="POST"} 2`,
		`rest_client_requests_total{code="<error>",host="api:6443",method="GET"} 1`,
	}, w.lines(t, metrics.Path, "rest_client_requests_total"))
	assert.Equal(t, []string{`rest_client_request_size_bytes_sum{host="api:6443",verb="POST"} 10`}, w.lines(t, metrics.Path, "rest_client_request_size_bytes_sum"))
	assert.Equal(t, []string{`rest_client_response_size_bytes_sum{host="api:6443",verb="POST"} 18`}, w.lines(t, metrics.Path, "rest_client_response_size_bytes_sum"), "not of the watch")
	assert.Empty(t, other.lines(t, metrics.Path, "rest_client_requests_total"))
}
