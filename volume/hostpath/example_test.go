package hostpath_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume/hostpath"
)

func ExamplePrepare() {
	socket := v1.HostPathSocket
	fmt.Println(hostpath.Prepare(&v1.HostPathVolumeSource{Path: "/dev/null", Type: &socket}))
	fmt.Println(hostpath.Prepare(&v1.HostPathVolumeSource{Path: "/var/../etc"}))
	// Output:
	// hostPath type check failed: /dev/null is not a socket file, it's a CharDevice
	// invalid HostPath `/var/../etc`: must not contain '..'
}
