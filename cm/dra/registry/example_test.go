package registry_test

import (
	"context"
	"fmt"

	"github.com/kubeparts/kubeparts/cm/dra/registry"
)

// A driver registers, usually by register.Watcher of volume/csi/register.
func Example() {
	plugins, err := registry.New(registry.Config{Changed: func(driver string) { fmt.Println("registered:", driver) }})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	fmt.Println(plugins.Register(ctx, "gpu.example.com", "/var/lib/kubelet/plugins/gpu/dra.sock", []string{"v1.DRAPlugin"}))
	fmt.Println(plugins.Registered("gpu.example.com"))
	plugins.Deregister(ctx, "gpu.example.com")
	_, err = plugins.Prepare(ctx, "gpu.example.com", nil)
	fmt.Println(err)
	// Output:
	// registered: gpu.example.com
	// <nil>
	// true
	// DRA driver gpu.example.com is not registered
}
