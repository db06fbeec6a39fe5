package client_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/client"
)

// The Node authorizer permits a node to read the claims of its pods, and NodeRestriction to
// delete its own ResourceSlices (rules dra-3, dra-4).
func clusterClaims(t *testing.T, c *cluster) {
	m, _ := c.connect(t, "claims")
	c.connect(t, "claims-of-others")
	r := client.ResourceClaims{Client: m.conn.API, NodeName: m.node}

	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "gpu", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu"},
		}}}},
	}
	_, err := c.admin.ResourceV1().ResourceClaims(m.node).Create(t.Context(), claim, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = r.GetClaim(t.Context(), m.node, "gpu")
	require.True(t, apierrors.IsForbidden(err), "no pod of the node has the claim: %v", err)
	_, err = c.admin.CoreV1().Pods(m.node).Create(t.Context(), &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "train"},
		Spec: v1.PodSpec{
			NodeName: m.node, AutomountServiceAccountToken: new(false),
			ResourceClaims: []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("gpu")}},
			Containers:     []v1.Container{{Name: "main", Image: "train:1", Resources: v1.ResourceRequirements{Claims: []v1.ResourceClaim{{Name: "gpu"}}}}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	soon(t, "the node reads the claim", func() bool {
		got, err := r.GetClaim(t.Context(), m.node, "gpu")
		return err == nil && got.Name == "gpu"
	})
	_, err = r.GetClaim(t.Context(), m.node, "none")
	require.Error(t, err)

	slices := c.admin.ResourceV1().ResourceSlices()
	for name, node := range map[string]string{"a.example.com": m.node, "b.example.com": m.node, "c.example.com": "claims-of-others"} {
		_, err := slices.Create(t.Context(), &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourceapi.ResourceSliceSpec{
				Driver: name, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
			},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	remaining := func() (names []string) {
		list, err := slices.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, s := range list.Items {
			names = append(names, s.Name)
		}
		return names
	}
	require.NoError(t, r.DeleteSlices(t.Context(), "a.example.com"))
	assert.ElementsMatch(t, []string{"b.example.com", "c.example.com"}, remaining())
	require.NoError(t, r.DeleteSlices(t.Context(), ""))
	assert.Equal(t, []string{"c.example.com"}, remaining())
	err = client.ResourceClaims{Client: m.conn.API, NodeName: "claims-of-others"}.DeleteSlices(t.Context(), "")
	assert.True(t, apierrors.IsForbidden(errors.Unwrap(err)), "%v", err)
	assert.Equal(t, []string{"c.example.com"}, remaining())
}
