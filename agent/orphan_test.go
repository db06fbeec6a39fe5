package agent

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/runtime"
)

// The runtime lists a pod that no source specifies and no worker has terminated: its
// resources are not free.
func TestGarbageReleasesTheResourcesOfPodsThatDoNotRun(t *testing.T) {
	var held []types.UID
	allocated, err := allocation.Open(allocation.Config{Admit: func(_ context.Context, req allocation.Request) *runtime.Rejection {
		held = nil
		for _, other := range req.Others {
			held = append(held, other.UID)
		}
		return nil
	}})
	require.NoError(t, err)
	pod := func(uid types.UID) *v1.Pod { return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}} }
	for _, uid := range []types.UID{"desired", "removed", "running"} {
		require.Nil(t, allocated.Admit(t.Context(), pod(uid)))
	}
	k := &keeper{fail: map[string]error{"list": assert.AnError}}
	g := newSweeper(Config{Runtime: k, Subsystems: Subsystems{Allocation: allocated}}, nil)
	policy := runtime.GCPolicy{Keep: func(uid types.UID) bool { return uid == "desired" }}
	require.ErrorIs(t, g.CollectGarbage(t.Context(), policy), assert.AnError)
	require.Nil(t, allocated.Admit(t.Context(), pod("new")))
	assert.Len(t, held, 3, "the running pods are unknown")

	k.fail = nil
	require.NoError(t, g.CollectGarbage(t.Context(), policy))
	require.Nil(t, allocated.Admit(t.Context(), pod("desired")))
	assert.Equal(t, []types.UID{"running"}, held)
}
