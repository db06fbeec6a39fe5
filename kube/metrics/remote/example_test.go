package remote_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/kube/metrics/remote"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A call of the CRI is counted.
func Example() {
	m, err := metrics.New(metrics.Config{NodeName: "n1"})
	if err != nil {
		log.Fatal(err)
	}
	r, err := remote.New(m)
	if err != nil {
		log.Fatal(err)
	}
	hooks := r.Runtime() // cri.Config.Hooks, which are called for each call
	hooks.Called(cri.CallInfo{Operation: "list_containers", Duration: time.Millisecond})

	answer := httptest.NewRecorder()
	m.Handlers(metrics.Sources{})[metrics.Path].ServeHTTP(answer, httptest.NewRequest(http.MethodGet, metrics.Path, nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "kubelet_runtime_operations_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// kubelet_runtime_operations_total{operation_type="list_containers"} 1
}
