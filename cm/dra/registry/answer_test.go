package registry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kubeparts/kubeparts/cm/dra"
)

func TestCDINames(t *testing.T) {
	for name, err := range map[string]string{
		"vendor.com/gpu=0":       "",
		"v/c=a.b:c-d_e":          "",
		"":                       `no "="`,
		"vendor.com/gpu":         `no "="`,
		"gpu=0":                  `no "/"`,
		"/gpu=0":                 "invalid vendor",
		"1vendor/gpu=0":          "invalid vendor",
		"vendor./gpu=0":          "invalid vendor",
		"vendor.com/=0":          "invalid class",
		"vendor.com/g.u=0":       "invalid class",
		"vendor.com/gpu=":        "invalid device",
		"vendor.com/gpu=-a":      "invalid device",
		"../../etc=x":            "invalid vendor",
		"vendor.com/gpu=a b":     "invalid device",
		"vendor.com/gpu=a\x00b":  "invalid device",
		"vendor.com/gpu=a/../b":  "invalid device",
		"v/c=" + repeated(2_000): "longer than",
	} {
		if err == "" {
			assert.NoError(t, checkCDIName(name), name)
		} else {
			assert.ErrorContains(t, checkCDIName(name), err, name)
		}
	}
}

func repeated(n int) string { return strings.Repeat("a", n) }

// dra-9
func TestResponsesOfDrivers(t *testing.T) {
	claims := []dra.ClaimRef{{Namespace: "ns", Name: "a", UID: "1"}, {Namespace: "ns", Name: "b", UID: "2"}}
	device := func(pool, name string, cdi ...string) *drav1.Device {
		return &drav1.Device{PoolName: pool, DeviceName: name, CdiDeviceIds: cdi}
	}
	many := func(n int) (all []*drav1.Device) {
		for i := range n {
			all = append(all, device("p", fmt.Sprint(i)))
		}
		return all
	}
	for name, tt := range map[string]struct {
		devices []*drav1.Device
		err     string // of the claim
	}{
		"none":             {},
		"without CDI":      {devices: []*drav1.Device{device("p", "d")}},
		"shares":           {devices: []*drav1.Device{{PoolName: "p", DeviceName: "d", ShareId: new("1")}, {PoolName: "p", DeviceName: "d", ShareId: new("2")}}},
		"most":             {devices: many(256)},
		"too many":         {devices: many(257), err: "257 devices, the limit is 256"},
		"twice":            {devices: []*drav1.Device{device("p", "d"), device("p", "d")}, err: "device p/d occurs twice"},
		"no pool":          {devices: []*drav1.Device{device("", "d")}, err: "pool name is empty"},
		"no name":          {devices: []*drav1.Device{device("p", "")}, err: "device name is empty"},
		"nil":              {devices: []*drav1.Device{nil}, err: "pool name is empty"},
		"long":             {devices: []*drav1.Device{device("p", repeated(300))}, err: "longer than 253 bytes"},
		"bad CDI":          {devices: []*drav1.Device{device("p", "d", "v/c=1", "oops")}, err: `CDI device "oops": no "="`},
		"too many CDI":     {devices: []*drav1.Device{device("p", "d", make([]string, 65)...)}, err: "65 CDI devices"},
		"too many request": {devices: []*drav1.Device{{PoolName: "p", DeviceName: "d", RequestNames: make([]string, 65)}}, err: "65 requests"},
		"long request":     {devices: []*drav1.Device{{PoolName: "p", DeviceName: "d", RequestNames: []string{repeated(300)}}}, err: "request name is longer"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := preparedOf(claims, map[string]*drav1.NodePrepareResourceResponse{"1": {Devices: tt.devices}, "2": nil})
			require.NoError(t, err)
			require.NoError(t, got["2"].Err, "a response without devices is valid")
			if tt.err == "" {
				require.NoError(t, got["1"].Err)
				assert.Len(t, got["1"].Devices, len(tt.devices))
				return
			}
			require.ErrorContains(t, got["1"].Err, tt.err)
			assert.Empty(t, got["1"].Devices)
		})
	}
	_, err := preparedOf(claims, map[string]*drav1.NodePrepareResourceResponse{"1": {}, "3": {}})
	require.EqualError(t, err, `driver returned a result for unknown claim UID "3"`)
	_, err = unpreparedOf(claims, map[string]*drav1.NodeUnprepareResourceResponse{"3": {}})
	require.Error(t, err)
	failed, err := unpreparedOf(claims, map[string]*drav1.NodeUnprepareResourceResponse{"1": {Error: repeated(5_000) + "\xff"}, "2": nil})
	require.NoError(t, err)
	assert.Len(t, failed["1"].Error(), 1027)
	require.NoError(t, failed["2"])
}
