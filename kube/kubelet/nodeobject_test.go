package kubelet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestResourcesThatTheNodeAdvertises(t *testing.T) {
	var none *cluster
	assert.False(t, none.advertises("example.com/dongle"))
	c := &cluster{object: &nodeObject{exists: make(chan struct{})}}
	assert.False(t, c.advertises("example.com/dongle"), "there is no object yet")
	c.object.observed(&v1.Node{Status: v1.NodeStatus{Allocatable: v1.ResourceList{
		"example.com/dongle": resource.MustParse("4"), "example.com/gone": resource.MustParse("0"),
	}}})
	assert.True(t, c.advertises("example.com/dongle"))
	assert.False(t, c.advertises("example.com/gone"))
	assert.False(t, c.advertises("example.com/other"))
}
