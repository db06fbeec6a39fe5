package apitest_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/client/apitest"
)

// A server that will not have its pods deleted.
func ExampleServer() {
	api := &apitest.Server{Fault: func(c apitest.Call) apitest.Fault {
		if c.Verb == "delete" {
			return apitest.Fault{Code: http.StatusForbidden, Message: "hands off"}
		}
		return apitest.Fault{}
	}}
	api.Put(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web"}})
	client, err := kubernetes.NewForConfig(api.RESTConfig())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.CoreV1().Pods("prod").Delete(context.Background(), "web", metav1.DeleteOptions{}))
	for _, call := range api.Calls() {
		fmt.Println(call)
	}
	// Output:
	// hands off
	// delete pods prod/web
}
