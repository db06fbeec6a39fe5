package client_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/client/apitest"
)

// vol-64
func TestDriversAreAddedToTheCSINode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		api.Put(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Labels: map[string]string{"kept": "yes"}}})
		conn, err := client.ConnectTo(api.RESTConfig(), client.Config{})
		require.NoError(t, err)
		known := client.CSINode{Client: conn.API, NodeName: "n"}

		// Two at once: neither takes the other's place.
		var wg sync.WaitGroup
		for _, d := range []client.CSIDriver{
			{Name: "a.example.com", NodeID: "ida", MaxVolumes: 7, Topology: map[string]string{"zone": "east"}},
			{Name: "b.example.com", NodeID: "idb"},
		} {
			wg.Go(func() { assert.NoError(t, known.Add(t.Context(), d)) })
		}
		wg.Wait()
		require.NoError(t, known.Add(t.Context(), client.CSIDriver{Name: "b.example.com", NodeID: "idb2"}))
		node := api.Get("nodes", "", "n").(*v1.Node)
		assert.JSONEq(t, `{"a.example.com": "ida", "b.example.com": "idb2"}`, node.Annotations["csi.volume.kubernetes.io/nodeid"])
		assert.Equal(t, map[string]string{"kept": "yes", "zone": "east"}, node.Labels)
		csi := api.Get("csinodes", "", "n").(*storagev1.CSINode)
		assert.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"}}, csi.OwnerReferences)
		seven := int32(7)
		assert.ElementsMatch(t, []storagev1.CSINodeDriver{
			{Name: "a.example.com", NodeID: "ida", TopologyKeys: []string{"zone"}, Allocatable: &storagev1.VolumeNodeResources{Count: &seven}},
			{Name: "b.example.com", NodeID: "idb2"},
		}, csi.Spec.Drivers)

		require.NoError(t, known.Remove(t.Context(), "a.example.com"))
		require.NoError(t, known.Remove(t.Context(), "b.example.com"))
		assert.Empty(t, api.Get("csinodes", "", "n").(*storagev1.CSINode).Spec.Drivers)
		assert.NotContains(t, api.Get("nodes", "", "n").(*v1.Node).Annotations, "csi.volume.kubernetes.io/nodeid")

		gone := client.CSINode{Client: conn.API, NodeName: "other"}
		require.ErrorContains(t, gone.Add(t.Context(), client.CSIDriver{Name: "a.example.com"}), "client: register CSI driver a.example.com")
	})
}

// ns-10: the object exists before any driver registers.
func TestACSINodeIsMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		conn, err := client.ConnectTo(api.RESTConfig(), client.Config{})
		require.NoError(t, err)
		known := client.CSINode{Client: conn.API, NodeName: "n"}
		require.ErrorContains(t, known.Ensure(t.Context()), "client: create CSINode n: ")
		api.Put(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}})
		require.NoError(t, known.Ensure(t.Context()))
		require.NoError(t, known.Add(t.Context(), client.CSIDriver{Name: "a.example.com", NodeID: "ida"}))
		require.NoError(t, known.Ensure(t.Context()))
		csi := api.Get("csinodes", "", "n").(*storagev1.CSINode)
		assert.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"}}, csi.OwnerReferences)
		assert.Len(t, csi.Spec.Drivers, 1)
	})
}
