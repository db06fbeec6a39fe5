package dra_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// dra-12
func TestHealthOfThePodsDevices(t *testing.T) {
	w := newWorld(claim("a", "d", "p"))
	m := w.manager(t, nil)
	p := pod("p", "a")
	p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "other"})
	health := func(driver, pool, device string) (v1.ResourceHealthStatus, string) {
		return v1.ResourceHealthStatusUnhealthy, driver + " is hot"
	}
	assert.Nil(t, m.Health(p, health), "not prepared")
	require.NoError(t, m.PrepareResources(t.Context(), p))
	assert.Equal(t, map[string][]v1.ResourceStatus{"c": {{Name: "claim:a", Resources: []v1.ResourceHealth{
		{ResourceID: "d/pool/a", Health: v1.ResourceHealthStatusUnhealthy, Message: new("d is hot")},
	}}}}, m.Health(p, health))
}

// pr-2
func TestUsedDevicesOfAContainer(t *testing.T) {
	w := newWorld(claim("a", "d1,d2", "p"))
	m := w.manager(t, nil)
	p := pod("p", "a")
	c := &p.Spec.Containers[0]
	assert.Empty(t, m.UsedDevices(p, c))
	require.NoError(t, m.PrepareResources(t.Context(), p))
	all := m.UsedDevices(p, c)
	require.Len(t, all, 2)
	assert.Equal(t, "ns/a d1", all[0].Claim.String()+" "+all[0].Driver)
	assert.Equal(t, []string{"d1/claim=a"}, all[0].CDI)
	assert.Equal(t, "d2", all[1].Driver)
}
