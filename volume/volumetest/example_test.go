package volumetest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// A mounter in memory lists its mounts, and fails where a fault is injected.
func Example() {
	dir, err := os.MkdirTemp("", "data")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	mounter := new(volumetest.Mounter)
	fmt.Println(mounter.Mount("/dev/vdb", dir, "ext4", []string{"ro"}))
	points, _ := mounter.List()
	fmt.Println(points[0].Device, points[0].Type, points[0].Opts)

	mounter.Fault = func(act, _ string) error { return errors.New(act + ": device is busy") }
	fmt.Println(mounter.Unmount(dir))

	objects := volumetest.NewObjects(volumetest.ConfigMap("prod", "settings", map[string]string{"mode": "fast"}))
	cm, err := objects.ConfigMap(context.Background(), "prod", "settings")
	fmt.Println(cm.Data, err)
	// Output:
	// <nil>
	// /dev/vdb ext4 [ro]
	// unmount: device is busy
	// map[mode:fast] <nil>
}
