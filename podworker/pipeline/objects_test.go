package pipeline_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker/pipeline"
)

type nodeObjects struct{ *node }

func (n nodeObjects) Register(*v1.Pod)     { _ = n.ask("register") }
func (n nodeObjects) Unregister(types.UID) { _ = n.ask("unregister") }

func (n nodeObjects) Retain(context.Context, func(types.UID) bool) error {
	return n.ask("retain objects")
}

func newNodeWithObjects(t *testing.T) (*node, *pipeline.Pipeline) {
	n := &node{fail: map[string]error{}, phase: v1.PodPending}
	p, err := pipeline.New(pipeline.Config{
		Runtime: n, Status: n, Network: n.network, Resources: pipeline.Resources{Volumes: n, Cgroups: nodeCgroups{n}, Objects: nodeObjects{n}},
	})
	require.NoError(t, err)
	return n, p
}

func TestObjectsAreRegisteredBeforeThePodIsSynced(t *testing.T) { // sl-29, cm-20
	n, p := newNodeWithObjects(t)
	_, err := p.Sync(t.Context(), firstWork(newPod("web", 0)))
	require.NoError(t, err)
	assert.Equal(t, []string{"report", "network", "register", "ensure cgroup", "mount", "sync"}, n.asked)
}

func TestObjectsAreUnregisteredOnceTheVolumesAreUnmounted(t *testing.T) { // vol-30, sl-47
	n, p := newNodeWithObjects(t)
	n.fail["unmount"] = assert.AnError
	require.Error(t, p.Cleanup(t.Context(), firstWork(newPod("web", 0))))
	assert.NotContains(t, n.asked, "unregister", "volumes may still be read from")

	n.asked, n.fail = nil, nil
	require.NoError(t, p.Cleanup(t.Context(), firstWork(newPod("web", 0))))
	assert.Equal(t, []string{"report", "unmount", "unregister", "remove cgroup", "finish"}, n.asked)

	n.asked = nil
	require.NoError(t, p.Retain(t.Context(), func(types.UID) bool { return false }))
	assert.Equal(t, []string{"retain statuses", "retain objects"}, n.asked, "one that never came to its cleanup")
}
