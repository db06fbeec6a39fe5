package device_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/device/devicetest"
	"github.com/kubeparts/kubeparts/cm/topology"
)

// podOf requests n devices of a resource.
func podOf(uid, name string, n int64) *v1.Pod {
	p := pod(uid, 0)
	p.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceName(name): *resource.NewQuantity(n, resource.DecimalSI)}
	return p
}

// admitted returns a topology manager over the device manager.
func (d *desk) topology() *topology.Manager {
	d.t.Helper()
	m, err := topology.NewManager(topology.Config{Machine: &topology.Machine{}, Providers: []topology.Provider{d.Manager}})
	require.NoError(d.t, err)
	return m
}

// A plugin that does not answer a call delays the pods that request its devices only: those of other
// plugins are admitted, and the manager stops.
func TestAPluginThatDoesNotAnswerDelaysNoOtherPod(t *testing.T) {
	const good = "example.com/good"
	for method, stuck := range map[string]func(release <-chan struct{}, called func()) *devicetest.Plugin{
		"Allocate": func(release <-chan struct{}, called func()) *devicetest.Plugin {
			return &devicetest.Plugin{OnAllocate: func(context.Context, []string) (*pluginapi.AllocateResponse, error) {
				called()
				<-release
				return &pluginapi.AllocateResponse{}, nil
			}}
		},
		"GetPreferredAllocation": func(release <-chan struct{}, called func()) *devicetest.Plugin {
			return &devicetest.Plugin{
				Options: &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true},
				OnPrefer: func([]string, []string, int) []string {
					called()
					<-release
					return nil
				},
			}
		},
	} {
		t.Run(method, func(t *testing.T) {
			d := newDesk(t, device.Config{})
			release, called := make(chan struct{}), make(chan struct{}, 1)
			defer close(release)
			d.plugin(stuck(release, func() {
				select {
				case called <- struct{}{}:
				default:
				}
			}), 4)
			d.plugin(&devicetest.Plugin{Resource: good}, 4)
			m := d.topology()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			waiting := make(chan error, 1)
			go func() { waiting <- m.Admit(ctx, podOf("a", widget, 1)) }()
			<-called

			begun := time.Now()
			require.NoError(t, m.Admit(t.Context(), podOf("b", good, 1)))
			require.NoError(t, m.Admit(t.Context(), podOf("c", good, 1)))
			assert.Less(t, time.Since(begun), 10*time.Second)
			assert.Len(t, d.Devices("b", "c0")[good], 1)

			begun = time.Now()
			d.stop()
			assert.Less(t, time.Since(begun), 10*time.Second)
			cancel()
			select {
			case <-waiting:
			case <-time.After(10 * time.Second):
				t.Error("the waiting pod cannot be canceled")
			}
		})
	}
}

// The devices of a pod that waits for its plugin are not given to another pod, are not on disk before the
// plugin has answered, and are free again when the plugin fails.
func TestDevicesAreReservedDuringACall(t *testing.T) {
	store := new(disk)
	d := newDesk(t, device.Config{Store: store})
	answer := make(chan *pluginapi.AllocateResponse)
	d.plugin(&devicetest.Plugin{OnAllocate: func(context.Context, []string) (*pluginapi.AllocateResponse, error) {
		return <-answer, nil
	}}, 1)
	d.plugin(&devicetest.Plugin{Resource: "example.com/good"}, 4)
	m := d.topology()
	admitted := make(chan error, 1)
	admit := func(uid string) { admitted <- m.Admit(t.Context(), podOf(uid, widget, 1)) }
	go admit("a")
	d.until("the device is reserved", func() bool { return d.Holds("a") })
	require.ErrorContains(t, m.Admit(t.Context(), podOf("b", widget, 1)), "requested number of devices unavailable")
	require.NoError(t, m.Admit(t.Context(), podOf("c", "example.com/good", 1)))
	assert.True(t, store.has(`"PodUID":"c"`))
	assert.False(t, store.has(`"PodUID":"a"`), "its plugin has not answered")
	answer <- &pluginapi.AllocateResponse{}
	require.ErrorContains(t, <-admitted, "no containers return")
	assert.False(t, d.Holds("a"))

	go admit("b")
	answer <- &pluginapi.AllocateResponse{ContainerResponses: []*pluginapi.ContainerAllocateResponse{{Envs: map[string]string{"X": "1"}}}}
	require.NoError(t, <-admitted)
	assert.True(t, store.has(`"PodUID":"b"`))
	options, err := d.Options("b", "c0")
	require.NoError(t, err)
	assert.True(t, slices.Contains(options.Env, device.Pair{Name: "X", Value: "1"}))

	d.Free("b") // a deleted pod is released while its plugin is called
	go admit("c2")
	d.until("the device is reserved", func() bool { return d.Holds("c2") })
	d.Free("c2")
	answer <- &pluginapi.AllocateResponse{ContainerResponses: []*pluginapi.ContainerAllocateResponse{{}}}
	require.Error(t, <-admitted)
	assert.False(t, d.Holds("c2"))
}
