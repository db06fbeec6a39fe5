package pipeline_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
)

// A mirrors rejects mirror pods, and counts the attempts.
type mirrors struct{ created int }

func (*mirrors) Node() (metav1.OwnerReference, bool) {
	return metav1.OwnerReference{Name: "kitchen", UID: "node-uid"}, true
}

func (m *mirrors) CreateMirror(context.Context, *v1.Pod) error {
	m.created++
	return errors.New("forbidden")
}

func (*mirrors) DeleteMirror(context.Context, *v1.Pod) error { return errors.New("forbidden") }

func TestAMirrorPodThatCannotBeCreatedDoesNotDelayASync(t *testing.T) { // sl-32, mir-3
	rt, api := &node{phase: v1.PodRunning}, new(mirrors)
	p, err := pipeline.New(pipeline.Config{Runtime: rt, Mirrors: api})
	require.NoError(t, err)
	static := newPod("s1", 0)
	static.Annotations = map[string]string{runtime.ConfigHashAnnotation: "hash-s1", runtime.ConfigSourceAnnotation: "file"}
	_, err = p.Sync(t.Context(), firstWork(static))
	require.NoError(t, err, "a static pod runs without the API server")
	assert.Equal(t, 1, api.created)
	assert.Contains(t, rt.asked, "sync")

	_, err = p.Sync(t.Context(), firstWork(newPod("p", 0)))
	require.NoError(t, err)
	assert.Equal(t, 1, api.created, "other pods have no mirror pod")
}
