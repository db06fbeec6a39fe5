package device_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/device/devicetest"
	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
)

// dev-3, dev-5: the plugin stops and returns.
func TestAPluginRestarts(t *testing.T) {
	d := newDesk(t, device.Config{})
	p := d.plugin(&devicetest.Plugin{}, 2)
	require.NoError(t, d.allocate(pod("a", 1)))
	p.Stop()
	d.has(widget, 2, 0)
	require.EqualError(t, d.allocate(pod("b", 1)), "cannot allocate unregistered device example.com/widget")
	require.EqualError(t, d.Wait(pod("b", 1)), "cannot allocate unregistered device example.com/widget", "it may return")
	next := d.plugin(&devicetest.Plugin{Endpoint: "other.sock"}, 2)
	require.NoError(t, d.Wait(pod("b", 1)))
	require.NoError(t, d.allocate(pod("b", 1)))
	assert.Equal(t, []string{"1"}, d.ids("b", "c0"), "0 is given already")

	// Another registers while the first still runs: the old one is left.
	d.plugin(&devicetest.Plugin{Endpoint: "third.sock"}, 3)
	next.Set()
	require.NoError(t, d.allocate(pod("c", 1)))
	assert.Equal(t, []string{"2"}, d.ids("c", "c0"))
}

// dev-3: a plugin is updated without an interruption, and the update is reverted.
func TestTwoPluginsOfOneResource(t *testing.T) {
	d := newDesk(t, device.Config{})
	old := d.plugin(&devicetest.Plugin{}, 2)
	require.NoError(t, d.allocate(pod("a", 1)))
	next := d.plugin(&devicetest.Plugin{Endpoint: "next.sock"}, 3)
	require.NoError(t, d.allocate(pod("b", 1)))
	require.Equal(t, [][]string{{"1"}}, next.Allocated(), "the newer one is called")

	next.Stop()
	d.until("the older one is used again", func() bool {
		capacity, allocatable, _ := d.Capacity()
		require.Equal(t, capacity, allocatable, "no device becomes unhealthy")
		all := capacity[widget]
		return all.Value() == 2
	})
	d.Retain(func(uid types.UID) bool { return uid != "a" })
	require.NoError(t, d.allocate(pod("c", 1)))
	assert.Equal(t, [][]string{{"0"}, {"0"}}, old.Allocated())
	old.Stop()
	d.has(widget, 2, 0)
}

// dev-5
func TestAResourceWhosePluginStaysAwayIsDropped(t *testing.T) {
	d := newDesk(t, device.Config{Timing: device.Timing{Grace: 50 * time.Millisecond}})
	p := d.plugin(&devicetest.Plugin{}, 1)
	p.Stop()
	d.until("it is dropped", func() bool {
		_, _, gone := d.Capacity()
		return len(gone) == 1 && gone[0] == widget
	})
	capacity, _, gone := d.Capacity()
	assert.Empty(t, capacity)
	assert.Empty(t, gone)
}

// dev-9, dev-10, dev-11: the agent restarts.
func TestTheAgentIsRestarted(t *testing.T) {
	dir := sockets(t)
	d := newDesk(t, device.Config{Dir: dir})
	assert.True(t, d.Fresh())
	p := d.plugin(&devicetest.Plugin{}, 2)
	require.NoError(t, d.allocate(pod("a", 1)))
	d.stop()
	p.Stop()

	d = newDesk(t, device.Config{Dir: dir})
	assert.False(t, d.Fresh())
	d.has(widget, 0, 0) // listed, without usable devices (dev-9)
	assert.Equal(t, []string{"0"}, d.ids("a", "c0"))
	require.Error(t, d.Wait(pod("b", 1)))

	// A container of a running pod is recreated: the plugin is not called.
	require.NoError(t, d.Ensure(t.Context(), pod("a", 1), &pod("a", 1).Spec.Containers[0]))
	options, err := d.Options("a", "c0")
	require.NoError(t, err)
	assert.Equal(t, []device.Pair{{Name: "DEVICES", Value: "[0]"}}, options.Env)

	p = d.plugin(&devicetest.Plugin{}, 2)
	require.NoError(t, d.Wait(pod("b", 1)))
	require.NoError(t, d.allocate(pod("b", 1)))
	assert.Equal(t, []string{"1"}, d.ids("b", "c0"))
	assert.Equal(t, [][]string{{"1"}}, p.Allocated())
}

// dev-10: the node was rebooted. Nothing runs; pods that had devices wait for their
// plugin, and devices are allocated again from those that exist now.
func TestTheNodeIsRestarted(t *testing.T) {
	for name, tc := range map[string]struct {
		after []string // the devices of the plugin after it
		a     []string
		fails string
	}{
		"as before":       {after: []string{"0", "1", "2"}, a: []string{"1"}},
		"other names":     {after: []string{"x", "y", "z"}, a: []string{"x"}},
		"nothing is left": {after: []string{}, fails: "no healthy devices present; cannot allocate unhealthy devices example.com/widget"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := sockets(t)
			d := newDesk(t, device.Config{Dir: dir})
			p := d.plugin(&devicetest.Plugin{}, 3)
			require.NoError(t, d.allocate(pod("up", 1)))
			require.NoError(t, d.allocate(pod("a", 1)))
			d.stop()
			p.Stop()

			d = newDesk(t, device.Config{Dir: dir, Nodes: topology.MaskOf(0), Pods: rebooted{}})
			assert.Equal(t, []string{"1"}, d.ids("a", "c0"), "it is kept for it")
			require.EqualError(t, d.Wait(pod("a", 1)), "cannot allocate unregistered device "+widget, "a minute late is not too late")
			p = &devicetest.Plugin{Dir: dir, Resource: widget}
			var list []*pluginapi.Device
			for _, id := range tc.after {
				list = append(list, devicetest.Device(id))
			}
			p.Set(list...)
			require.NoError(t, p.Start(t.Context()))
			t.Cleanup(p.Stop)
			d.has(widget, len(list), len(list))
			d.until("the plugin has sent its list", func() bool { return d.Wait(pod("a", 1)) == nil })
			a := pod("a", 1)
			hints := d.Hints(a, &a.Spec.Containers[0])
			err := d.allocate(a)
			if tc.fails != "" {
				require.EqualError(t, err, tc.fails)
				return
			}
			require.NoError(t, err)
			assert.NotEqual(t, []topology.Hint{}, hints[widget])
			assert.Equal(t, tc.a, d.ids("a", "c0"))
			require.NoError(t, d.Ensure(t.Context(), a, &a.Spec.Containers[0]))
			assert.Equal(t, [][]string{tc.a}, p.Allocated(), "the plugin prepares the device again")
			require.NoError(t, d.allocate(pod("b", 1)))
			assert.NotEqual(t, d.ids("a", "c0"), d.ids("b", "c0"))
		})
	}
}

// dev-8 and beyond: running containers are adopted after the state was lost.
func TestALostStateIsRebuiltFromRunningContainers(t *testing.T) {
	dir := sockets(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, device.StateFile), []byte("{"), 0o600))
	d := newDesk(t, device.Config{Dir: dir, Adopt: []device.Adopted{{PodUID: "a", Container: "c0", Devices: map[string][]string{widget: {"0"}}}}})
	assert.FileExists(t, filepath.Join(dir, device.StateFile+state.Backup))
	p := d.plugin(&devicetest.Plugin{}, 2)
	require.NoError(t, d.allocate(pod("b", 1)))
	assert.Equal(t, []string{"1"}, d.ids("b", "c0"))
	a := pod("a", 1)
	require.NoError(t, d.Ensure(t.Context(), a, &a.Spec.Containers[0]))
	assert.Equal(t, [][]string{{"1"}, {"0"}}, p.Allocated(), "the response is requested again")
}

// rebooted implements device.Pods after a reboot.
type rebooted struct{}

func (rebooted) Ran(types.UID) bool    { return false }
func (rebooted) Active(types.UID) bool { return true }
