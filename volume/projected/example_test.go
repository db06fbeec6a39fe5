package projected_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/projected"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func Example() {
	root, err := os.MkdirTemp("", "agent")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	objects := volumetest.NewObjects(volumetest.ConfigMap("default", "web", map[string]string{"greeting": "hello"})) // or volume/objectdir, or the client of an API server
	plugin, err := projected.New(projected.Config{Objects: objects, Tmpfs: &emptydir.Tmpfs{Mounter: new(volumetest.Mounter)}})
	if err != nil {
		log.Fatal(err)
	}
	pod := new(v1.Pod)
	pod.Namespace = "default"
	req := volume.Request{
		Place: volume.Place{RootDir: root, PodUID: "0001", Plugin: plugin.Name(), Name: "files"},
		Pod:   pod,
		Spec: &volume.Spec{Volume: &v1.Volume{Name: "files", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "web"}}},
		}}}}},
	}
	mounted, err := plugin.SetUp(context.Background(), req) // a volume.Manager does this
	if err != nil {
		log.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(mounted.Path, "greeting"))
	fmt.Println(string(data), err)
	// Output:
	// hello <nil>
}
