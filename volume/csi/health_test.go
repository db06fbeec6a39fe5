package csi_test

import (
	"errors"
	"testing"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume/csi"
)

func TestTheHealthOfAVolume(t *testing.T) {
	w := newWorld(t, csi.Config{})
	req := w.request(t, persistent("vol-1"))
	require.NoError(t, w.Stage(t.Context(), req))
	_, _ = w.published(t, req)
	health, err := w.Health(t.Context(), req.Place)
	require.NoError(t, err)
	assert.Empty(t, health)
	w.driver.Unwell("vol-1", "the disk is on fire")
	health, err = w.Health(t.Context(), req.Place)
	require.NoError(t, err)
	assert.Equal(t, []v1.VolumeHealthCondition{{Status: v1.VolumeHealthDegraded, Reason: "Unwell", Message: "the disk is on fire"}}, health)
	w.driver.Fail("NodeGetVolumeHealth", status.Error(codes.Internal, "busy"))
	_, err = w.Health(t.Context(), req.Place)
	require.ErrorContains(t, err, "csi: NodeGetVolumeHealth: rpc error: code = Internal desc = busy")
	w.driver.Fail("NodeGetVolumeHealth", nil)
	w.Deregister(t.Context(), driverName)
	_, err = w.Health(t.Context(), req.Place)
	require.ErrorContains(t, err, "not found in the list of registered CSI drivers")
}

func TestTheHealthOfAVolumeOfADriverWithoutIt(t *testing.T) {
	w := newWorld(t, csi.Config{}, csipb.NodeServiceCapability_RPC_GET_VOLUME_HEALTH)
	req := w.request(t, persistent("vol-1"))
	_, err := w.Health(t.Context(), req.Place)
	require.Error(t, err, "it is not published")
	_, _ = w.published(t, req)
	_, err = w.Health(t.Context(), req.Place)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
