package csitest_test

import (
	"context"
	"fmt"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/kubeparts/kubeparts/volume/csi/csitest"
)

// The driver identifies itself, and rejects calls that are out of the specification's
// order.
func Example() {
	driver := &csitest.Driver{Name: "test.csi.example.com"}
	info, err := driver.NodeGetInfo(context.Background(), new(csipb.NodeGetInfoRequest))
	fmt.Println(info.NodeId, err)
	_, err = driver.NodePublishVolume(context.Background(), &csipb.NodePublishVolumeRequest{
		VolumeId: "vol-1", StagingTargetPath: "/staged", TargetPath: "/target", VolumeCapability: &csipb.VolumeCapability{AccessMode: new(csipb.VolumeCapability_AccessMode)},
	})
	fmt.Println(err)
	// Output:
	// node-of-test.csi.example.com <nil>
	// rpc error: code = FailedPrecondition desc = staged at "", not at "/staged"
}
