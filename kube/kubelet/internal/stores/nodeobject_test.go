package stores_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
)

func TestRateLimit(t *testing.T) {
	for _, tc := range []struct {
		in   *int32
		want float32
	}{{nil, 0}, {new(int32(0)), -1}, {new(int32(5)), 5}} {
		assert.InDelta(t, tc.want, stores.RateLimit(tc.in), 0)
	}
}

// A standalone kubelet has a nil object.
func TestNodeObject(t *testing.T) {
	found := []string{"10.0.0.1"}
	var none *stores.NodeObject
	assert.Nil(t, none.Best())
	assert.Equal(t, found, none.HostIPs(found))

	o := stores.NewNodeObject(wingtest.Base(t, wingtest.Standalone(t, "")))
	assert.Nil(t, o.Best())
	assert.Equal(t, found, o.HostIPs(found))
	_, ok := o.Attached("v")
	assert.False(t, ok || o.InUse("v"))
	o.Observed(&v1.Node{Status: v1.NodeStatus{
		Addresses: []v1.NodeAddress{
			{Type: v1.NodeHostName, Address: "n1"}, {Type: v1.NodeInternalIP, Address: "10.0.0.9"}, {Type: v1.NodeExternalIP, Address: "1.2.3.4"},
			{Type: v1.NodeExternalDNS, Address: "n1.example"}, {Type: v1.NodeHostName, Address: "10.0.0.8"},
		},
		VolumesAttached: []v1.AttachedVolume{{Name: "v", DevicePath: "/dev/v"}}, VolumesInUse: []v1.UniqueVolumeName{"w"},
	}})
	o.Observed(o.Object()) // known is closed once
	assert.NoError(t, o.Registered(t.Context()))
	assert.Equal(t, []string{"10.0.0.9"}, o.HostIPs(found))
	names, ips := o.Names()
	assert.Equal(t, []string{"n1", "n1.example"}, names)
	assert.Equal(t, []net.IP{net.ParseIP("10.0.0.9"), net.ParseIP("1.2.3.4"), net.ParseIP("10.0.0.8")}, ips, "also of a host name that is an address, as with the kubelet")
	device, ok := o.Attached("v")
	assert.True(t, ok && o.InUse("w") && !o.InUse("v"))
	assert.Equal(t, "/dev/v", device)
	o.Observed(nil)
	_, ok = o.Attached("v")
	assert.False(t, ok || o.InUse("w"), "a deleted object is no evidence that a volume is attached")
	assert.Equal(t, []string{"10.0.0.9"}, o.HostIPs(found), "the last addresses")
	o.Observed(o.Best())
	_, ok = o.Attached("v")
	assert.True(t, ok)
}
