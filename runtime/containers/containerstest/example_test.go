package containerstest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/containers/containerstest"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// The response of the first call of Run is lost: the second call with the same Key returns the instance
// that the first has started.
func ExampleBackend() {
	ctx := context.Background()
	backend := &containerstest.Backend{Fault: func(c fake.Call) fake.Fault {
		if c.Number == 1 {
			return fake.Fault{Err: context.DeadlineExceeded, Lost: true}
		}
		return fake.Fault{}
	}}
	web := containers.Container{Key: "web-0", Image: "nginx:1", Name: "web"}
	_, err := backend.Run(ctx, web)
	fmt.Println(err)
	if _, err := backend.Run(ctx, web); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(backend.Instances()), "instance")
	// Output:
	// context deadline exceeded
	// 1 instance
}
