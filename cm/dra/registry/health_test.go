package registry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
)

func health(pool, name string, h healthv1.HealthStatus, timeout int64, message string) *healthv1.DeviceHealth {
	return &healthv1.DeviceHealth{Device: &healthv1.DeviceIdentifier{PoolName: pool, DeviceName: name}, Health: h, HealthCheckTimeoutSeconds: timeout, Message: message}
}

// dra-12
func TestHealthOfDevicesExpires(t *testing.T) {
	now := time.Unix(1_000, 0)
	c := healthCache{}
	list, err := reportsOf([]*healthv1.DeviceHealth{
		health("p", "a", healthv1.HealthStatus_HEALTHY, 0, ""), health("p", "b", healthv1.HealthStatus_UNHEALTHY, 10, "hot"), health("p", "c", 99, -1, ""),
	})
	require.NoError(t, err)
	assert.True(t, c.update(now, list))
	assert.False(t, c.update(now, list))
	status, message := c.get("p", "b")
	assert.Equal(t, "Unhealthy hot", string(status)+" "+message)
	status, _ = c.get("p", "c")
	assert.Equal(t, v1.ResourceHealthStatusUnknown, status)
	changed, next := c.expire(now.Add(9 * time.Second))
	assert.False(t, changed)
	assert.Equal(t, now.Add(10*time.Second), next)
	changed, next = c.expire(next)
	assert.True(t, changed)
	assert.Equal(t, now.Add(30*time.Second), next, "the default")
	status, _ = c.get("p", "b")
	assert.Equal(t, v1.ResourceHealthStatusUnknown, status)
	assert.True(t, c.update(now.Add(20*time.Second), list[1:2]), "only that device")
	status, _ = c.get("p", "a")
	assert.Equal(t, v1.ResourceHealthStatusHealthy, status, "a device that is not in the list keeps its health until it expires")
	_, _ = c.expire(now.Add(time.Hour))
	assert.Empty(t, c)
	status, _ = healthCache(nil).get("p", "a")
	assert.Equal(t, v1.ResourceHealthStatusUnknown, status)
}

// dra-12
func TestReportsOfHealthAreBounded(t *testing.T) {
	_, err := reportsOf(make([]*healthv1.DeviceHealth, maxReported+1))
	require.ErrorContains(t, err, "health of 10001 devices")
	for _, bad := range []*healthv1.DeviceHealth{nil, {}, health("p", "", 0, 0, ""), health(repeated(300), "d", 0, 0, "")} {
		_, err = reportsOf([]*healthv1.DeviceHealth{bad})
		require.ErrorContains(t, err, "invalid name")
	}
	r := reportOf(health("p", "d", healthv1.HealthStatus_HEALTHY, 1<<62, strings.Repeat("ü", 1025)))
	assert.Equal(t, maxHealthTimeout, r.timeout)
	assert.Equal(t, strings.Repeat("ü", 1021)+"...", r.message)
	c := healthCache{}
	for i := range maxReported + 5 {
		c.update(time.Unix(0, 0), []deviceReport{{deviceKey: deviceKey{"p", fmt.Sprint(i)}, timeout: time.Second}})
	}
	assert.Len(t, c, maxReported)
}
