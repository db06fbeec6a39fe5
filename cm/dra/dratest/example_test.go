package dratest_test

import (
	"context"
	"fmt"

	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kubeparts/kubeparts/cm/dra/dratest"
)

// The response of a driver, called without its socket.
func ExampleDriver() {
	driver := &dratest.Driver{Name: "test.example.com"}
	req := &drav1.NodePrepareResourcesRequest{Claims: []*drav1.Claim{{Namespace: "default", Name: "gpu", Uid: "1234"}}}
	answer, err := driver.NodePrepareResources(context.Background(), req)
	fmt.Println(answer.Claims["1234"].Devices[0].CdiDeviceIds, driver.Prepared(), err)

	driver.SetFault(dratest.Fail)
	_, err = driver.NodePrepareResources(context.Background(), req)
	fmt.Println(err)
	// Output:
	// [test.example.com/claim=1234] [1234] <nil>
	// failed
}
