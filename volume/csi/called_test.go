package csi_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/volume/csi"
)

// vol-81: each call to a driver is reported with its code: csi_operations_seconds.
func TestCallsAreObserved(t *testing.T) {
	var mu sync.Mutex
	var calls []string
	w := newWorld(t, csi.Config{Called: func(c csi.CallInfo) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, c.Driver+" "+c.Method+" "+c.Code)
	}})
	w.driver.Fail("NodePublishVolume", status.Error(codes.Internal, "no"))
	req := w.request(t, inline())
	_, err := w.SetUp(t.Context(), req)
	require.Error(t, err)
	w.driver.Fail("NodePublishVolume", nil)
	_, err = w.SetUp(t.Context(), req)
	require.NoError(t, err)
	mu.Lock()
	defer mu.Unlock()
	publishes := slices.DeleteFunc(calls, func(c string) bool {
		return c != "test.csi.example.com /csi.v1.Node/NodePublishVolume OK" && c != "test.csi.example.com /csi.v1.Node/NodePublishVolume Internal"
	})
	assert.Equal(t, []string{"test.csi.example.com /csi.v1.Node/NodePublishVolume Internal", "test.csi.example.com /csi.v1.Node/NodePublishVolume OK"}, publishes)
}
