package cri

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// unresizable returns an error from UpdatePodSandboxResources.
type unresizable struct {
	internalapi.RuntimeService
	internalapi.ImageManagerService
	err error
	got *runtimeapi.UpdatePodSandboxResourcesRequest
}

func (u *unresizable) Close(context.Context) error { return nil }

func (u *unresizable) UpdatePodSandboxResources(_ context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	u.got = req
	return nil, u.err
}

func TestASandboxThatCannotBeResizedIsNoFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		fail bool
	}{
		"rt-150 resized":                 {nil, false},
		"rt-150 unimplemented":           {status.Error(codes.Unimplemented, "unknown method"), false},
		"rt-150 unknown not implemented": {status.Error(codes.Unknown, "update: not implemented"), false},
		"rt-150 unknown":                 {status.Error(codes.Unknown, "broken"), true},
		"rt-150 internal":                {status.Error(codes.Internal, "not implemented"), true},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unresizable{err: tc.err}
			rt, err := New(Config{Name: "fake", Runtime: u, Images: u})
			require.NoError(t, err)
			err = rt.updateSandbox(t.Context(), "s1", nil, &runtimeapi.LinuxContainerResources{CpuShares: 2})
			assert.Equal(t, tc.fail, err != nil, "%v", err)
			assert.Equal(t, "s1", u.got.PodSandboxId)
			assert.EqualValues(t, 2, u.got.Resources.CpuShares)
		})
	}
}
