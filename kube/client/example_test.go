package client_test

import (
	"context"
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
)

// The pods of one node are read from an API server, and a status is written to it.
func Example() {
	api := new(apitest.Server) // a server in memory; client.Connect has the others
	api.Put(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web"}, Spec: v1.PodSpec{NodeName: "node-1"}})

	conn, err := client.ConnectTo(api.RESTConfig(), client.Config{UserAgent: "tiny/0.1"})
	if err != nil {
		log.Fatal(err)
	}
	pods, err := client.NewPods(client.PodsConfig{Client: conn.API, NodeName: "node-1"})
	if err != nil {
		log.Fatal(err)
	}
	statuses, err := client.NewStatuses(client.StatusesConfig{Client: conn.API, Pods: pods})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	err = pods.Run(ctx, func(set []*v1.Pod) {
		defer stop() // the first set is enough here
		for _, pod := range set {
			fmt.Println("desired:", pod.Namespace+"/"+pod.Name)
			if err := statuses.UpdatePodStatus(ctx, pod, v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.0.0.7"}); err != nil {
				log.Fatal(err)
			}
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the server has:", api.Pod("prod", "web").Status.Phase, api.Pod("prod", "web").Status.PodIP)
	for _, call := range api.Calls("patch") {
		fmt.Println(call)
	}
	// Output:
	// desired: prod/web
	// the server has: Running 10.0.0.7
	// patch pods/status prod/web
}

// A Secret is watched as long as a pod refers to it, and its changes are reported.
func ExampleObjects() {
	api := new(apitest.Server)
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "db"}, Data: map[string][]byte{"password": []byte("one")}}
	api.Put(secret)
	conn, err := client.ConnectTo(api.RESTConfig(), client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	changed := make(chan string)
	objects, err := client.NewObjects(client.ObjectsConfig{
		Client:  conn.API,
		Changed: func(kind, namespace, name string) { changed <- kind + " " + namespace + "/" + name },
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { _ = objects.Run(ctx) }()

	objects.Register(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web", UID: "web-uid"},
		Spec: v1.PodSpec{Volumes: []v1.Volume{{Name: "db", VolumeSource: v1.VolumeSource{
			Secret: &v1.SecretVolumeSource{SecretName: "db"},
		}}}},
	})
	now, err := objects.Secret(ctx, "prod", "db")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", now.Data["password"])

	secret.Data["password"] = []byte("two")
	api.Put(secret)
	fmt.Println("changed:", <-changed)
	now, err = objects.Secret(ctx, "prod", "db")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", now.Data["password"])
	// Output:
	// one
	// changed: Secret prod/db
	// two
}
