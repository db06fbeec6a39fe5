package apitest_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
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

// One controller applies the fields that it owns, another one scales.
func ExampleServer_apply() {
	api := new(apitest.Server)
	client, err := kubernetes.NewForConfig(api.RESTConfig())
	if err != nil {
		log.Fatal(err)
	}
	labels := map[string]string{"app": "web"}
	container := corev1.Container().WithName("main").WithImage("nginx:1.29")
	web := appsv1.Deployment("web", "prod").WithSpec(appsv1.DeploymentSpec().
		WithSelector(applymetav1.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(corev1.PodTemplateSpec().WithLabels(labels).WithSpec(corev1.PodSpec().WithContainers(container))))
	deployments := client.AppsV1().Deployments("prod")
	opts := metav1.ApplyOptions{FieldManager: "controller"}
	if _, err := deployments.Apply(context.Background(), web, opts); err != nil {
		log.Fatal(err)
	}
	replicas := []byte(`{"spec":{"replicas":3}}`)
	if _, err := deployments.Patch(context.Background(), "web", types.MergePatchType, replicas, metav1.PatchOptions{FieldManager: "autoscaler"}, "scale"); err != nil {
		log.Fatal(err)
	}
	web.Spec.Template.Spec.Containers[0].WithImage("nginx:1.30")
	d, err := deployments.Apply(context.Background(), web, opts)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Image, "generation", d.Generation)
	web.Spec.WithReplicas(5)
	_, err = deployments.Apply(context.Background(), web, opts)
	fmt.Println(apierrors.IsConflict(err))
	// Output:
	// 3 nginx:1.30 generation 3
	// true
}

// A custom resource is served as soon as its definition is created.
func ExampleServer_customResource() {
	api := new(apitest.Server)
	client, err := dynamic.NewForConfig(api.RESTConfig())
	if err != nil {
		log.Fatal(err)
	}
	size := map[string]any{"type": "integer", "minimum": int64(1), "default": int64(1)}
	spec := map[string]any{"type": "object", "properties": map[string]any{"size": size}}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": spec}},
			}}},
		},
	}}
	api.Put(definition)
	widgets := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Namespace("prod")
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}, "spec": map[string]any{},
	}}
	made, err := widgets.Create(context.Background(), widget, metav1.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(made.Object["spec"])
	_, err = widgets.Patch(context.Background(), "w", types.MergePatchType, []byte(`{"spec":{"size":0}}`), metav1.PatchOptions{})
	fmt.Println(err)
	// Output:
	// map[size:1]
	// Widget.example.com "w" is invalid: spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1
}
