package image_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/image"
)

func Example() {
	plugin := new(image.Plugin)
	spec := &volume.Spec{Volume: &v1.Volume{Name: "model", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "model:1"}}}}
	mounted, err := plugin.SetUp(context.Background(), volume.Request{Spec: spec})
	fmt.Printf("%t %q %v\n", plugin.CanSupport(spec), mounted.Path, err) // the runtime finds it
	// Output:
	// true "" <nil>
}
