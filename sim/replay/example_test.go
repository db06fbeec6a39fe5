package replay_test

import (
	"context"
	"fmt"
	"log"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
)

// A recording, here one of three frames: the recorded agent started a pod that it
// received, and the replayed one is asked to do the same.
func Example() {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}, Spec: v1.PodSpec{
		Containers: []v1.Container{{Name: "main", Image: "nginx"}}, RestartPolicy: v1.RestartPolicyAlways,
	}}
	start := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	recording, err := replay.Read(func(yield func(record.Frame, error) bool) {
		_ = yield(record.Frame{Header: &record.Header{Start: start, File: 1, Node: "node-1"}}, nil) &&
			yield(record.Frame{At: time.Second, Pods: &record.Pods{Source: "api", Changed: []*v1.Pod{pod}}}, nil) &&
			yield(record.Frame{At: time.Minute, End: &record.End{}}, nil)
	})
	if err != nil {
		log.Fatal(err)
	}
	result, err := replay.Run(context.Background(), recording, replay.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Divergence.Pod, result.Divergence.What+":", result.Divergence.Reason)
	// Output: default/web statuses: not in the recording
}
