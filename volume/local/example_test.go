package local_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/local"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func Example() {
	root, err := os.MkdirTemp("", "agent")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	plugin, err := local.New(local.Config{RootDir: root, Mounter: new(volumetest.Mounter)})
	if err != nil {
		log.Fatal(err)
	}
	pv := new(v1.PersistentVolume)
	pv.Name, pv.Spec.Local = "disk-1", &v1.LocalVolumeSource{Path: os.TempDir()}
	mounted, err := plugin.SetUp(context.Background(), volume.Request{
		Place: volume.Place{RootDir: root, PodUID: "0001", Plugin: plugin.Name(), Name: "disk-1"},
		Pod:   new(v1.Pod), Spec: &volume.Spec{PV: pv},
	})
	fmt.Println(strings.TrimPrefix(mounted.Path, root), err)
	// Output:
	// /pods/0001/volumes/kubernetes.io~local-volume/disk-1 <nil>
}
