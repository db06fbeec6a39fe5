package nfs_test

import (
	"fmt"
	"log"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/nfs"
)

func Example() {
	plugin, err := nfs.New(nfs.Config{Mounter: volume.NewMounter(volume.CanMount())})
	if err != nil {
		log.Fatal(err)
	}
	export := &v1.NFSVolumeSource{Server: "nfs.example.com", Path: "/home"}
	fmt.Println(plugin.Name(), plugin.CanSupport(&volume.Spec{Volume: &v1.Volume{VolumeSource: v1.VolumeSource{NFS: export}}}))
	// Output: kubernetes.io/nfs true
}
