package device_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/device/devicetest"
	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
)

// kubelets is a record with the checksum that a kubelet computes for it.
const kubelets = `{"Data":{"PodDeviceEntries":[{"PodUID":"uid","ContainerName":"c","ResourceName":"example.com/x","DeviceIDs":{"-1":null,"0":["d0"],"1":["d1","d\"2"]},"AllocResp":"CgdoZWxsbw=="},{"PodUID":"u2","ContainerName":"c","ResourceName":"example.com/x","DeviceIDs":null,"AllocResp":null}],"RegisteredDevices":{"e/y":null,"e/z":[],"example.com/x":["a","b"]}},"Checksum":2866678207}`

// dev-8: the format of the record is the kubelet's.
func TestTheStateIsInTheKubeletsForm(t *testing.T) {
	m, err := device.Open(device.Config{Dir: t.TempDir(), Store: &state.Memory{Record: []byte(kubelets)}})
	require.NoError(t, err)
	assert.Equal(t, map[string][]device.Device{"example.com/x": {
		{ID: "d\"2", Nodes: topology.MaskOf(1)}, {ID: "d0", Nodes: topology.MaskOf(0)}, {ID: "d1", Nodes: topology.MaskOf(1)},
	}}, m.Devices("uid", "c"))
	_, err = m.Options("uid", "c")
	require.Error(t, err, "hello is no answer of a plugin")

	store := new(state.Memory)
	m, err = device.Open(device.Config{Dir: t.TempDir(), Store: store, Adopt: []device.Adopted{{PodUID: "a", Container: "c", Devices: map[string][]string{"e/x": {"1"}}}}})
	require.NoError(t, err)
	m.Free("a")
	assert.Equal(t, `{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"e/x":[]}},"Checksum"`, string(store.Record[:75]))
}

// Each byte of a state flipped once: the state is set aside, or decodes to the same.
func TestACorruptStateIsDetected(t *testing.T) {
	store := new(state.Memory)
	d := newDesk(t, device.Config{Store: store})
	p := &devicetest.Plugin{Dir: d.dir, Resource: widget}
	p.Set(devicetest.Device("w0", 0, 1), devicetest.Device("w1"))
	require.NoError(t, p.Start(t.Context()))
	t.Cleanup(p.Stop)
	d.has(widget, 2, 2)
	require.NoError(t, d.allocate(pod("a", 2)))
	d.stop()
	record := slices.Clone(store.Record)
	whole, err := device.Open(device.Config{Dir: d.dir, Store: &state.Memory{Record: record}})
	require.NoError(t, err)
	for i := range record {
		for bit := range 8 {
			broken := slices.Clone(record)
			broken[i] ^= 1 << bit
			store := &state.Memory{Record: broken}
			m, err := device.Open(device.Config{Dir: d.dir, Store: store})
			require.NoError(t, err)
			if store.Kept != nil {
				require.Empty(t, m.Devices("a", "c0"))
				continue
			}
			require.Equal(t, whole.Devices("a", "c0"), m.Devices("a", "c0"), "byte %d, bit %d", i, bit)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(kubelets))
	f.Add([]byte(`{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":3467439661}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := device.Open(device.Config{Dir: "nowhere", Store: &state.Memory{Record: data}})
		require.NoError(t, err)
		m.Capacity()
	})
}
