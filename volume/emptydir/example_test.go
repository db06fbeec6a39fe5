package emptydir_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func Example() {
	root, err := os.MkdirTemp("", "agent")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	mounter := new(volumetest.Mounter) // in memory; mount.New("") is the machine's
	plugin, err := emptydir.New(emptydir.Config{Mounter: mounter, NoSwap: new(false)})
	if err != nil {
		log.Fatal(err)
	}
	req := volume.Request{
		Place: volume.Place{RootDir: root, PodUID: "0001", Plugin: plugin.Name(), Name: "cache"},
		Pod:   new(v1.Pod),
		Spec:  &volume.Spec{Volume: &v1.Volume{Name: "cache", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}}},
	}
	mounted, err := plugin.SetUp(context.Background(), req) // a volume.Manager does this
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.TrimPrefix(mounted.Path, root))
	points, _ := mounter.List()
	fmt.Println(points[0].Type)
	fmt.Println(plugin.TearDown(context.Background(), req.Place))
	// Output:
	// /pods/0001/volumes/kubernetes.io~empty-dir/cache
	// tmpfs
	// <nil>
}
