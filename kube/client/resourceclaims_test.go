package client_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
)

// dra-3, dra-4
func TestClaimsAreReadAndSlicesDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		api.Put(&resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gpu", UID: "u"}})
		for _, name := range []string{"n-a", "n-b", "other-a"} {
			node, driver := name[:len(name)-2], name[len(name)-1:]+".example.com"
			api.Put(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{NodeName: &node, Driver: driver}})
		}
		conn, err := client.ConnectTo(api.RESTConfig(), client.Config{})
		require.NoError(t, err)
		r := client.ResourceClaims{Client: conn.API, NodeName: "n"}
		claim, err := r.GetClaim(t.Context(), "ns", "gpu")
		require.NoError(t, err)
		assert.EqualValues(t, "u", claim.UID)
		_, err = r.GetClaim(t.Context(), "ns", "none")
		assert.True(t, apierrors.IsNotFound(err))

		require.NoError(t, r.DeleteSlices(t.Context(), "a.example.com"))
		left := func() (names []string) {
			for _, name := range []string{"n-a", "n-b", "other-a"} {
				if api.Get("resourceslices", "", name) != nil {
					names = append(names, name)
				}
			}
			return names
		}
		assert.Equal(t, []string{"n-b", "other-a"}, left())
		require.NoError(t, r.DeleteSlices(t.Context(), ""))
		assert.Equal(t, []string{"other-a"}, left(), "not those of other nodes")
	})
}
