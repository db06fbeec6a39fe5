package volume_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/hostpath"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// A pod finds its volumes at the paths that Mount returns, and leaves nothing behind.
func Example() {
	root, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	m, err := volume.New(volume.Config{
		RootDir: root, Plugins: []volume.Plugin{new(hostpath.Plugin)},
		Mounter: new(volumetest.Mounter), // mount.New("") on a node
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- m.Run(ctx) }()

	kind := v1.HostPathDirectoryOrCreate
	p := pod("uid-1", "logs")
	p.Spec.Volumes[0].VolumeSource = v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: filepath.Join(root, "logs"), Type: &kind}}
	ready, err := m.Mount(ctx, p)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("logs is at", filepath.Base(ready["logs"].Path))

	_, err = m.Mount(ctx, pod("uid-2", "unsupported"))
	fmt.Println(err)

	fmt.Println("unmounted:", m.Unmount(ctx, p))
	stop()
	fmt.Println("stopped:", <-stopped)
	// Output:
	// logs is at logs
	// unmounted volumes=[unsupported], unattached volumes=[], failed to process volumes=[unsupported]: volume "unsupported": no volume plugin matched: volumes of kind emptyDir are not supported by this agent
	// unmounted: <nil>
	// stopped: <nil>
}
