package apiserver_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/controllers/apiserver"
)

func ExampleStart() {
	ctx := context.Background()
	api := new(apitest.Server)
	stop, err := apiserver.Start(ctx, api, apiserver.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	clients, err := kubernetes.NewForConfig(api.RESTConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	service, err := clients.CoreV1().Services("default").Create(ctx, &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1.ServiceSpec{Ports: []v1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(service.Spec.ClusterIP)
	// Output: 10.0.0.2
}
