package metrics_test

import (
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/status"
)

// st-58: the number of series does not grow with a runtime's reasons.
func TestExitReasonsAreBounded(t *testing.T) {
	m, err := metrics.New(metrics.Config{NodeName: "n1", WithoutProcess: true})
	require.NoError(t, err)
	hooks := m.Status()
	for i := range int32(1000) {
		hooks.Terminated(status.TerminatedInfo{Type: "container", Exit: &v1.ContainerStateTerminated{ExitCode: 1000 + i, Reason: "R" + strconv.Itoa(int(i))}})
	}
	w := httptest.NewRecorder()
	m.Handlers(metrics.Sources{})[metrics.Path].ServeHTTP(w, httptest.NewRequest("GET", metrics.Path, nil))
	assert.Equal(t, 1, strings.Count(w.Body.String(), "\nkubelet_terminated_containers_total{"))
	assert.Contains(t, w.Body.String(), `kubelet_terminated_containers_total{container_type="container",exit_code="other",reason="Other"} 1000`)
}
