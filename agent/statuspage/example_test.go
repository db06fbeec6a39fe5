package statuspage_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// The state of an agent, served on the loopback interface.
func Example() {
	var history statuspage.History
	source, sink := new(podsource.Memory), new(status.MemorySink)
	source.Set(newPod("web"))
	a, err := agent.New(agent.Config{
		Runtime: new(runtimetest.Runtime), Sources: map[string]podsource.PodSource{podsource.APISource: source}, Sink: sink,
		Record: history.Record,
	})
	if err != nil {
		log.Fatal(err)
	}
	handler, err := statuspage.New(statuspage.Config{Agent: a, History: &history, NodeName: "edge-1"})
	if err != nil {
		log.Fatal(err)
	}
	ln, err := statuspage.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 2)
	go func() { stopped <- a.Run(ctx) }()
	go func() { stopped <- statuspage.Serve(ctx, ln, handler, nil) }()

	healthz := statuspage.Reach(ln.Addr()) + "healthz"
	resp, err := http.Get(healthz)
	for err == nil && resp.StatusCode == http.StatusServiceUnavailable { // the runtime has not been listed yet
		_ = resp.Body.Close()
		time.Sleep(10 * time.Millisecond)
		resp, err = http.Get(healthz)
	}
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	_ = resp.Body.Close()
	fmt.Println(resp.StatusCode)
	fmt.Println(len(body) > 0)
	cancel()
	fmt.Println(<-stopped, <-stopped)
	// Output:
	// 200
	// true
	// <nil> <nil>
}
