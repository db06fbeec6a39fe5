package metrics_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// The metrics of a PLEG, as a scrape returns them.
func Example() {
	m, err := metrics.New(metrics.Config{NodeName: "n1"})
	if err != nil {
		log.Fatal(err)
	}
	rt := new(runtimetest.Runtime)
	rt.Start("web", "nginx")
	gen, err := pleg.New(pleg.Config{Runtime: rt, Handle: func(pleg.Event) {}, Hooks: m.PLEG()})
	if err != nil {
		log.Fatal(err)
	}
	if err := gen.Relist(context.Background()); err != nil {
		log.Fatal(err)
	}
	handlers := m.Handlers(metrics.Sources{Runtime: gen})
	answer := httptest.NewRecorder()
	handlers[metrics.Path].ServeHTTP(answer, httptest.NewRequest(http.MethodGet, metrics.Path, nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "kubelet_running_") || strings.HasPrefix(line, "kubelet_pleg_relist_duration_seconds_count") {
			fmt.Print(line)
		}
	}
	// Output:
	// kubelet_pleg_relist_duration_seconds_count 1
	// kubelet_running_containers{container_state="created"} 0
	// kubelet_running_containers{container_state="exited"} 0
	// kubelet_running_containers{container_state="running"} 1
	// kubelet_running_containers{container_state="unknown"} 0
	// kubelet_running_pods 1
}
