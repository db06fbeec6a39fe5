package pipeline_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker/pipeline"
)

type nodeImages struct{ *node }

func (n nodeImages) AcquireImages(context.Context, *v1.Pod) (release func(), err error) {
	return func() { _ = n.ask("release images") }, n.ask("hold images")
}

func TestImagesArePinnedWhileAPodIsSynced(t *testing.T) {
	n, _ := newNode(t)
	p, err := pipeline.New(pipeline.Config{Runtime: n, Resources: pipeline.Resources{Images: nodeImages{n}}})
	require.NoError(t, err)
	_, err = p.Sync(t.Context(), firstWork(newPod("web", 0)))
	require.NoError(t, err)
	assert.Equal(t, []string{"hold images", "sync", "release images"}, n.asked)

	n.asked, n.fail["hold images"] = nil, errors.New("canceled")
	_, err = p.Sync(t.Context(), firstWork(newPod("web", 0)))
	require.ErrorContains(t, err, "canceled")
	assert.Equal(t, []string{"hold images"}, n.asked, "nothing is started whose image may be removed")
}
