package prober_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/prober"
)

// A pod with a running container becomes ready. Without Config.Status, the status of the pod
// determines which containers run.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	}))
	defer server.Close()

	pod := &v1.Pod{}
	pod.Name, pod.UID = "web", "1234"
	pod.Spec.Containers = []v1.Container{{Name: "nginx", ReadinessProbe: &v1.Probe{
		ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/healthz", Port: port(server)}},
	}}}
	pod.Status.PodIP = "127.0.0.1"
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{
		Name: "nginx", ContainerID: "docker://5678", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
	}}

	ctx, stop := context.WithCancel(context.Background())
	probes, err := prober.New(prober.Config{
		Handlers: prober.Handlers{HTTPGet: prober.HTTPGet{}},
		Changed: func(c prober.Change) {
			if c.Result.String() == "success" {
				fmt.Println(c.Kind, "of", c.Container, "is", c.Result)
				stop()
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	probes.Add(pod)
	if err := probes.Run(ctx); err != nil { // until stop
		log.Fatal(err)
	}
	// Output: Readiness of nginx is success
}

// One attempt of a probe, for callers that schedule probes themselves.
func ExampleHandlers_Probe() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "database unavailable")
	}))
	defer server.Close()

	handlers := prober.Handlers{HTTPGet: prober.HTTPGet{}}
	outcome, err := handlers.Probe(context.Background(), prober.Target{
		Pod:       &v1.Pod{},
		Container: &v1.Container{Name: "nginx"},
		Probe:     &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: port(server)}}},
		PodIP:     "127.0.0.1",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v: %s (%s)\n", outcome.Result, outcome.Output, outcome.Detail)
	// Output: failure: HTTP probe failed with statuscode: 503 (database unavailable)
}

// port returns the port of the server.
func port(s *httptest.Server) intstr.IntOrString {
	return intstr.FromString(s.URL[strings.LastIndex(s.URL, ":")+1:])
}
