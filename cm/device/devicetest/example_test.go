package devicetest_test

import (
	"context"
	"fmt"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kubeparts/kubeparts/cm/device/devicetest"
)

// The response of a plugin to Allocate, called without its socket.
func ExamplePlugin() {
	plugin := &devicetest.Plugin{Resource: "example.com/widget"}
	plugin.Set(devicetest.Device("w0"), devicetest.Ill("w1"))
	answer, err := plugin.Allocate(context.Background(), &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{"w0"}}},
	})
	fmt.Println(answer.ContainerResponses[0].Envs, plugin.Allocated(), err)
	// Output: map[DEVICES:[w0]] [[w0]] <nil>
}
