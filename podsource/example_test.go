package podsource_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podsource"
)

// Decode is strict and names what is wrong.
func ExampleDecode() {
	for _, manifest := range []string{
		"apiVersion: v1\nkind: Pod\nspec: {containers: [{name: web, imagee: nginx}]}",
		"apiVersion: v1\nkind: Pod\nspec: {containers: [{name: web, resources: {limits: {cpu: lots}}}]}",
		"apiVersion: apps/v1\nkind: Deployment",
		"kind: Pod\n---\nkind: Pod",
	} {
		_, err := podsource.Decode([]byte(manifest))
		fmt.Println(err)
	}
	// Output:
	// podsource: decode: unknown field "spec.containers[0].imagee"
	// podsource: decode: spec.containers[0].resources.limits.cpu: Invalid value: "lots": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
	// podsource: decode: apiVersion: Unsupported value: "apps/v1": supported values: "v1"; kind: Unsupported value: "Deployment": supported values: "Pod"
	// podsource: decode: has 2 documents; one pod per file
}

// Validate wants a pod with defaults.
func ExampleValidate() {
	pod, err := podsource.Decode([]byte(`
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec:
  containers:
  - name: web
    image: nginx
    ports: [{containerPort: 80000}]
    volumeMounts: [{name: data, mountPath: /data}]
`))
	if err != nil {
		log.Fatal(err)
	}
	for _, err := range podsource.Validate(podsource.Default(pod)) {
		fmt.Println(err)
	}
	// Output:
	// spec.containers[0].ports[0].containerPort: Invalid value: 80000: must be between 1 and 65535, inclusive
	// spec.containers[0].volumeMounts[0].name: Not found: "data"
}

// printer is a Sink that prints.
type printer struct{ synced func() }

func (p printer) AddPods(pods []*v1.Pod)    { fmt.Println("add", pods[0].Name) }
func (p printer) UpdatePods(pods []*v1.Pod) { fmt.Println("update", pods[0].Name) }
func (p printer) RemovePods(pods []*v1.Pod) { fmt.Println("remove", pods[0].Name) }
func (p printer) SourceSynced(source string) {
	fmt.Println("synced", source)
	p.synced()
}

// A program that decides itself which pods it wants.
func ExampleMemory() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	pod := new(v1.Pod)
	pod.Name, pod.Namespace, pod.UID = "web", "default", "1"
	pods := new(podsource.Memory)
	pods.Set(pod)

	merge, err := podsource.NewMerge(podsource.MergeConfig{
		Sources: map[string]podsource.PodSource{"mine": pods},
		Sink:    printer{synced: cancel},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := merge.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// add web
	// synced mine
}

// A manifest that turns bad keeps its pod.
func ExampleFile_Read() {
	dir, err := os.MkdirTemp("", "manifests")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	files, err := podsource.NewFile(podsource.FileConfig{Path: dir, NodeName: "node-1", Settle: -1})
	if err != nil {
		log.Fatal(err)
	}
	for _, manifest := range []string{
		"apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: nginx}]}",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: web}",
	} {
		if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(manifest), 0o600); err != nil {
			log.Fatal(err)
		}
		pods, err := files.Read()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(pods[0].Name, len(pods), "pod,", len(files.Problems()), "problems")
	}
	// Output:
	// web-node-1 1 pod, 0 problems
	// web-node-1 1 pod, 1 problems
}
