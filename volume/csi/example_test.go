package csi_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/csi"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func Example() {
	root, err := os.MkdirTemp("", "agent")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	plugin, err := csi.New(csi.Config{RootDir: root, NodeName: "node-1", Mounter: new(volumetest.Mounter)})
	if err != nil {
		log.Fatal(err)
	}
	spec := persistent("vol-1")
	name, _ := plugin.SharedName(spec)
	fmt.Println(name)
	_, err = plugin.SetUp(context.Background(), volume.Request{Spec: spec})
	fmt.Println(err) // until volume/csi/register has found it
	// Output:
	// test.csi.example.com^vol-1
	// csi: driver name test.csi.example.com not found in the list of registered CSI drivers
}
