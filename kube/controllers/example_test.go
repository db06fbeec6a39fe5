package controllers_test

import (
	"context"
	"fmt"
	"log"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/controllers"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// A Deployment becomes available on a fake node.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	api := new(apitest.Server).RESTConfig() // in memory; that of a real API server works too
	nodes, err := fakenode.New(api, fakenode.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- nodes.Run(ctx) }()
	go func() { ended <- controllers.Run(ctx, api, controllers.Config{}) }()

	deployments := kubernetes.NewForConfigOrDie(api).AppsV1().Deployments("default")
	labels := map[string]string{"app": "web"}
	web, err := deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
			},
		},
	}, metav1.CreateOptions{})
	for err == nil && web.Status.AvailableReplicas < 3 {
		time.Sleep(10 * time.Millisecond)
		web, err = deployments.Get(ctx, "web", metav1.GetOptions{})
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(web.Status.AvailableReplicas, "of", *web.Spec.Replicas, "replicas are available")
	cancel()
	fmt.Println(<-ended, <-ended)
	// Output:
	// 3 of 3 replicas are available
	// <nil> <nil>
}
