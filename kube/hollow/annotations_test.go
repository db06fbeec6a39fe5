package hollow

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

func TestABehaviorKeepsItsUsage(t *testing.T) {
	own, err := fake.ParseBehavior("ready=1s,cpu=2")
	require.NoError(t, err)
	behave := withUsage(func(_ *v1.Pod, c *v1.Container) (fake.Behavior, bool) { return own, c.Name == "own" })
	pod := &v1.Pod{}
	pod.Annotations = map[string]string{annotationCPU: "1", annotationMemory: "64Mi"}
	b, ok := behave(pod, &v1.Container{Name: "own"})
	assert.Equal(t, "ready=1s,memory=67108864,cpu=2", b.String())
	assert.True(t, ok)
	assert.Empty(t, own.Memory, "it is shared by pods")

	pod.Annotations = nil
	_, ok = behave(pod, &v1.Container{Name: "other"})
	assert.False(t, ok, "other sources of behaviors apply")
}
