package downward_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/downward"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func Example() {
	root, err := os.MkdirTemp("", "agent")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	plugin, err := downward.New(downward.Config{Tmpfs: &emptydir.Tmpfs{Mounter: new(volumetest.Mounter)}})
	if err != nil {
		log.Fatal(err)
	}
	pod := new(v1.Pod)
	pod.Labels = map[string]string{"app": "web"}
	req := volume.Request{
		Place: volume.Place{RootDir: root, PodUID: "0001", Plugin: plugin.Name(), Name: "files"},
		Pod:   pod,
		Spec: &volume.Spec{Volume: &v1.Volume{Name: "files", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{
			{Path: "labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
		}}}}},
	}
	mounted, err := plugin.SetUp(context.Background(), req) // a volume.Manager does this
	if err != nil {
		log.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(mounted.Path, "labels"))
	fmt.Println(string(data), err)
	// Output:
	// app="web" <nil>
}
