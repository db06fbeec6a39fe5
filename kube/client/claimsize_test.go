package client_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
)

func TestAnExpandedClaimIsReported(t *testing.T) { // vol-16
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		objects, err := client.NewObjects(client.ObjectsConfig{Client: connect(t, api).API})
		require.NoError(t, err)
		api.Put(&v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "data"},
			Status: v1.PersistentVolumeClaimStatus{
				Phase:                     v1.ClaimBound,
				Capacity:                  v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")},
				AllocatedResources:        v1.ResourceList{v1.ResourceStorage: resource.MustParse("2Gi")},
				AllocatedResourceStatuses: map[v1.ResourceName]v1.ClaimResourceStatus{v1.ResourceStorage: v1.PersistentVolumeClaimNodeResizePending},
				Conditions: []v1.PersistentVolumeClaimCondition{
					{Type: v1.PersistentVolumeClaimFileSystemResizePending, Status: v1.ConditionTrue},
					{Type: "example.com/somebodys", Status: v1.ConditionTrue},
				},
			},
		})
		claim, err := objects.PersistentVolumeClaim(t.Context(), "prod", "data")
		require.NoError(t, err)
		require.NoError(t, objects.ClaimExpanded(t.Context(), claim, resource.MustParse("2Gi")))
		assert.Equal(t, "1Gi", claim.Status.Capacity.Storage().String(), "the argument is not changed")
		after, err := objects.PersistentVolumeClaim(t.Context(), "prod", "data")
		require.NoError(t, err)
		assert.Equal(t, "2Gi", after.Status.Capacity.Storage().String())
		assert.Empty(t, after.Status.AllocatedResourceStatuses)
		require.Len(t, after.Status.Conditions, 1, "those of others stay")
		assert.EqualValues(t, "example.com/somebodys", after.Status.Conditions[0].Type)

		recreated := claim.DeepCopy()
		recreated.UID = "another"
		require.ErrorContains(t, objects.ClaimExpanded(t.Context(), recreated, resource.MustParse("3Gi")), "prod/data")
		require.Error(t, objects.ClaimExpanded(t.Context(), &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "none", UID: "x"}}, resource.MustParse("3Gi")))
	})
}
