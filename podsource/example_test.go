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

// printer is a Sink that prints.
type printer struct{ synced func() }

func (p printer) AddPods(pods []*v1.Pod)    { fmt.Println("add", pods[0].Name) }
func (p printer) UpdatePods(pods []*v1.Pod) { fmt.Println("update", pods[0].Name) }
func (p printer) ReconcilePods([]*v1.Pod)   {}
func (p printer) RemovePods(pods []*v1.Pod) { fmt.Println("remove", pods[0].Name) }
func (p printer) SourceSynced(source string) {
	fmt.Println("synced", source)
	p.synced()
}

// A program that determines its pods itself.
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
