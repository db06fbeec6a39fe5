package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/device/devicetest"
)

// dev-7: a container start waits for an unavailable plugin that prepares devices for
// each start: otherwise it would get a device in the state that the previous container
// left.
func TestAContainerDoesNotStartWithoutThePluginThatPreparesItsDevices(t *testing.T) {
	d := newDesk(t, device.Config{})
	p := d.plugin(&devicetest.Plugin{Options: &pluginapi.DevicePluginOptions{PreStartRequired: true}}, 1)
	a := pod("a", 1)
	require.NoError(t, d.allocate(a))
	require.NoError(t, d.PreStart(t.Context(), a, &a.Spec.Containers[0]))
	p.Stop()
	d.has(widget, 1, 0)
	require.ErrorContains(t, d.PreStart(t.Context(), a, &a.Spec.Containers[0]), "endpoint not found in cache for a registered resource: "+widget)
	d.plugin(&devicetest.Plugin{}, 1) // a newer one, that does not ask for it
	require.NoError(t, d.PreStart(t.Context(), a, &a.Spec.Containers[0]))
}
