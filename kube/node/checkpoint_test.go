package node_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/node"
)

func TestANodeIsReadFromItsCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.json")
	c, err := node.OpenCheckpoint(path, "n1")
	require.NoError(t, err)
	assert.Nil(t, c.Object())
	n := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u", Labels: map[string]string{"a": "b"}, ResourceVersion: "7"},
		Spec:       v1.NodeSpec{Taints: []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}},
		Status:     v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.0.1"}}, Images: []v1.ContainerImage{{Names: []string{"x"}}}},
	}
	require.NoError(t, c.Save(n))
	before, err := os.Stat(path)
	require.NoError(t, err)
	n.ResourceVersion = "8" // and every other field that is not part of a checkpoint
	require.NoError(t, c.Save(n))
	after, err := os.Stat(path)
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "nothing has changed: the file is not replaced")

	c, err = node.OpenCheckpoint(path, "n1")
	require.NoError(t, err)
	require.NotNil(t, c.Object())
	assert.Equal(t, n.Labels, c.Object().Labels)
	assert.Equal(t, n.Spec.Taints, c.Object().Spec.Taints)
	assert.Equal(t, n.Status.Addresses, c.Object().Status.Addresses)
	assert.Empty(t, c.Object().Status.Images)

	other, err := node.OpenCheckpoint(path, "n2")
	require.NoError(t, err)
	assert.Nil(t, other.Object(), "the checkpoint of another node")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = node.OpenCheckpoint(path, "n1")
	assert.ErrorContains(t, err, path)
}
