package kubelet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

func TestResourcesThatTheNodeAdvertises(t *testing.T) {
	var none *stores.Cluster
	assert.False(t, none.Advertises("example.com/dongle"))
	c := &stores.Cluster{Object: &stores.NodeObject{Exists: make(chan struct{})}}
	assert.False(t, c.Advertises("example.com/dongle"), "there is no object yet")
	c.Object.Observed(&v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{
		"example.com/dongle": resource.MustParse("4"), "example.com/gone": resource.MustParse("0"),
	}}})
	assert.True(t, c.Advertises("example.com/dongle"))
	assert.False(t, c.Advertises("example.com/gone"))
	assert.False(t, c.Advertises("example.com/other"))
}
