package fakenode_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// An hour of 100 nodes with 1,000 pods, of which every twentieth crashes 30 s after each
// start, in virtual time with an API server in memory.
func BenchmarkVirtualHour(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		ok := testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "hour", F: virtualHour}})
		if !ok {
			b.Fatal("not all pods run")
		}
	}
}

func virtualHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		fakenode.Start(t.Context(), t, api.RESTConfig(), fakenode.Config{Nodes: fakenode.Many(100, fakenode.Node{})})
		for i := range 1000 {
			pod := &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i), Namespace: "default"},
				Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
			}
			if i%20 == 0 {
				pod.Annotations = map[string]string{fakenode.Annotation: "exit=1@30s"}
			}
			api.Put(pod)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		for i := range 1000 {
			if pod := api.Pod("default", fmt.Sprintf("pod-%d", i)); pod.Status.Phase != v1.PodRunning {
				t.Fatal(pod.Name, pod.Status.Phase)
			}
		}
		t.Log(len(api.Calls()), "requests")
	})
}
