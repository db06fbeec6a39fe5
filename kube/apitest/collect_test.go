package apitest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// TestGarbageIsCollectedAfterTheLatency deletes an owner and a namespace, whose dependents and
// contents exist until the latency is over.
func TestGarbageIsCollectedAfterTheLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const latency = 20 * time.Millisecond
		api := &apitest.Server{CollectionLatency: latency}
		clients, err := kubernetes.NewForConfig(api.RESTConfig())
		require.NoError(t, err)
		_, err = clients.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		maps := clients.CoreV1().ConfigMaps("ns")
		owner, err := maps.Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		reference := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: new(true)}
		for _, name := range []string{"a", "b"} {
			_, err = maps.Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{reference}}}, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		require.NoError(t, maps.Delete(t.Context(), "owner", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}))
		assert.Len(t, api.List("configmaps"), 3, "the owner waits for its dependents")
		time.Sleep(latency - 1)
		assert.Len(t, api.List("configmaps"), 3)
		time.Sleep(10 * latency)
		assert.Empty(t, api.List("configmaps"))

		_, err = maps.Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, clients.CoreV1().Namespaces().Delete(t.Context(), "ns", metav1.DeleteOptions{}))
		assert.Len(t, api.List("configmaps"), 1)
		assert.Equal(t, v1.NamespaceTerminating, api.Get("namespaces", "", "ns").(*v1.Namespace).Status.Phase)
		time.Sleep(10 * latency)
		assert.Empty(t, api.List("configmaps"))
		assert.Nil(t, api.Get("namespaces", "", "ns"))
	})
}
