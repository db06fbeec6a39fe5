package cluster_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/kubeparts/kubeparts/kube/metrics"
	"github.com/kubeparts/kubeparts/kube/metrics/cluster"
)

// A request to the API server is counted. A rest.Config takes Client with Wrap.
func Example() {
	m, err := metrics.New(metrics.Config{NodeName: "n1"})
	if err != nil {
		log.Fatal(err)
	}
	c, err := cluster.New(m)
	if err != nil {
		log.Fatal(err)
	}
	api := httptest.NewServer(http.NotFoundHandler())
	defer api.Close()
	client := http.Client{Transport: c.Client(http.DefaultTransport)}
	got, err := client.Get(api.URL + "/api/v1/nodes/n1")
	if err != nil {
		log.Fatal(err)
	}
	_ = got.Body.Close()

	answer := httptest.NewRecorder()
	m.Handlers(metrics.Sources{})[metrics.Path].ServeHTTP(answer, httptest.NewRequest(http.MethodGet, metrics.Path, nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "rest_client_requests_total") {
			fmt.Print(strings.Replace(line, strings.TrimPrefix(api.URL, "http://"), "api", 1))
		}
	}
	// Output:
	// rest_client_requests_total{code="404",host="api",method="GET"} 1
}
