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

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
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
		assert.Empty(t, csi.Annotations)
	})
}

// vol-82: the annotation is set on a new CSINode, on that of an earlier agent, and by a driver that
// registers first. Nothing is written if it is correct.
func TestACSINodeHasTheMigratedPlugins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		conn, err := client.ConnectTo(api.RESTConfig(), client.Config{})
		require.NoError(t, err)
		api.Put(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "v"}},
			&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: map[string]string{"storage.alpha.kubernetes.io/migrated-plugins": "old", "other": "kept"}}})
		get := func(name string) *storagev1.CSINode { return api.Get("csinodes", "", name).(*storagev1.CSINode) }
		plugins := []string{"kubernetes.io/aws-ebs", "kubernetes.io/cinder"}
		first := client.CSINode{Client: conn.API, NodeName: "n", MigratedPlugins: plugins}
		require.NoError(t, first.Add(t.Context(), client.CSIDriver{Name: "a.example.com"}))
		assert.Equal(t, map[string]string{"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/cinder"}, get("n").Annotations)
		version := get("n").ResourceVersion
		require.NoError(t, first.Ensure(t.Context()))
		assert.Equal(t, version, get("n").ResourceVersion)
		second := client.CSINode{Client: conn.API, NodeName: "m", MigratedPlugins: plugins}
		require.NoError(t, second.Ensure(t.Context()))
		assert.Equal(t, map[string]string{"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/cinder", "other": "kept"}, get("m").Annotations)
	})
}
