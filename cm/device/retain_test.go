package device_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/device/devicetest"
)

// The callback of Retain may call the manager, and take its own locks.
func TestRetainsCallbackMayCallTheManager(t *testing.T) { // dev-12
	d := newDesk(t, device.Config{})
	d.plugin(&devicetest.Plugin{}, 2)
	require.NoError(t, d.allocate(pod("a", 1)))
	require.NoError(t, d.allocate(pod("b", 1)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Retain(func(uid types.UID) bool { return d.Holds(uid) && uid == "a" })
	}()
	select {
	case <-done:
	case <-time.After(90 * time.Second):
		require.Fail(t, "it waits for itself")
	}
	assert.True(t, d.Holds("a"))
	assert.False(t, d.Holds("b"))
}
