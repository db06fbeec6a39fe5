package podsapi_test

import (
	"context"
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/kubeparts/kubeparts/agent/podsapi"
)

// A Server returns pods with the statuses that the node has computed.
func Example() {
	web := &v1.Pod{}
	web.Namespace, web.Name, web.UID = "default", "web", "1"
	server, err := podsapi.New(podsapi.Config{
		Socket: "/var/lib/kubelet/pods-api/pods-api.sock",
		Pods:   one{web},
	})
	if err != nil {
		log.Fatal(err)
	}
	list, err := server.ListPods(context.Background(), &api.ListPodsRequest{})
	if err != nil {
		log.Fatal(err)
	}
	var pod v1.Pod
	if err := pod.Unmarshal(list.Pods[0]); err != nil {
		log.Fatal(err)
	}
	fmt.Println(pod.Namespace, pod.Name, pod.Status.Phase)
	// Output: default web Running
}

// one implements podsapi.Pods with one running pod.
type one struct{ pod *v1.Pod }

func (o one) Desired() []*v1.Pod                  { return []*v1.Pod{o.pod} }
func (o one) Pod(types.UID) (pod, mirror *v1.Pod) { return o.pod, nil }
func (one) Status(types.UID) (v1.PodStatus, bool) { return v1.PodStatus{Phase: v1.PodRunning}, true }
func (one) Synced() bool                          { return true }
