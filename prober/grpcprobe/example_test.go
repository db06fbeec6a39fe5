package grpcprobe_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/prober/grpcprobe"
	"github.com/kubeparts/kubeparts/runtime"
)

// One Check of a server, without a prober.
func Example() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	state, server := health.NewServer(), grpc.NewServer()
	healthpb.RegisterHealthServer(server, state)
	go func() { _ = server.Serve(l) }()
	defer server.Stop()

	target := prober.Target{
		Pod: &v1.Pod{}, Container: &v1.Container{Name: "db"}, PodIP: "127.0.0.1", Timeout: 10 * time.Second,
		Probe: &v1.Probe{ProbeHandler: v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: int32(l.Addr().(*net.TCPAddr).Port)}}},
	}
	for _, serving := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING} {
		state.SetServingStatus("", serving)
		outcome, err := grpcprobe.Handler{}.Probe(context.Background(), target)
		fmt.Println(serving, outcome.Result == runtime.ProbeSuccess, err)
	}
	// Output:
	// SERVING true <nil>
	// NOT_SERVING false <nil>
}
