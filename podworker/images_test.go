package podworker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker"
)

type nodeImages struct{ *node }

func (n nodeImages) AcquireImages(context.Context, *v1.Pod) (release func(), err error) {
	return func() { _ = n.ask("release images") }, n.ask("hold images")
}

func TestImagesAreHeldWhileAPodIsSynced(t *testing.T) {
	n, _ := newNode(t)
	p, err := podworker.NewPipeline(podworker.PipelineConfig{Runtime: n, Resources: podworker.PodResources{Images: nodeImages{n}}})
	require.NoError(t, err)
	_, err = p.Sync(t.Context(), firstWork(newPod("web", 0)))
	require.NoError(t, err)
	assert.Equal(t, []string{"hold images", "sync", "release images"}, n.asked)

	n.asked, n.fail["hold images"] = nil, errors.New("called off")
	_, err = p.Sync(t.Context(), firstWork(newPod("web", 0)))
	require.ErrorContains(t, err, "called off")
	assert.Equal(t, []string{"hold images"}, n.asked, "nothing is started whose image may be removed")
}
