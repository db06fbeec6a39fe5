package server_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/server"
)

// A node serves its pods to authorized users.
func Example() {
	node := pods{{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Status: v1.PodStatus{Phase: v1.PodRunning}}}
	s, err := server.New(server.Config{NodeName: "n1", Pods: node, Authenticator: auth.Chain{}, Authorizer: auth.AlwaysAllow{}})
	if err != nil {
		log.Fatal(err)
	}
	for _, port := range []http.Handler{s, s.ReadOnly(), s.Healthz()} {
		w := httptest.NewRecorder()
		port.ServeHTTP(w, httptest.NewRequest("GET", "/pods", nil))
		fmt.Printf("%d %.40s\n", w.Code, w.Body)
	}
	// Output:
	// 401 Unauthorized
	// 200 {"kind":"PodList","apiVersion":"v1","met
	// 404 404 page not found
}

// What a request to a node is authorised as.
func ExampleAttributes() {
	for _, path := range []string{"/pods", "/metrics/cadvisor", "/exec/default/web/nginx"} {
		fmt.Println(path, server.Attributes("n1", httptest.NewRequest("GET", path, nil)))
	}
	// Output:
	// /pods [get nodes/pods n1 get nodes/proxy n1]
	// /metrics/cadvisor [get nodes/metrics n1]
	// /exec/default/web/nginx [create nodes/proxy n1]
}
