package printer_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status/printer"
)

func ExamplePrinter() {
	var out bytes.Buffer // os.Stdout in a program
	p := &printer.Printer{W: &out}
	p.Printf("agent", "node %s is ready", "edge-1")

	pod := new(v1.Pod)
	pod.Name, pod.UID = "web", "1"
	_ = p.UpdatePodStatus(context.Background(), pod, v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.0.0.7"})
	p.Record(runtime.Event{
		Object: v1.ObjectReference{Name: "web"}, Type: v1.EventTypeWarning, Reason: "Unhealthy", Message: "Readiness probe failed",
	})
	_ = p.DeletePod(context.Background(), pod)

	for line := range strings.Lines(out.String()) {
		_, text, _ := strings.Cut(line, " ") // the time
		fmt.Print(text)
	}
	// Output:
	// agent                    node edge-1 is ready
	// web                      Running ready=0/0 restarts=0 ip=10.0.0.7
	// web                      Unhealthy: Readiness probe failed
	// web                      deleted
}
