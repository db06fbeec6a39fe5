package controllers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/controllers"
)

// The garbage collector deletes the ReplicaSet of a deleted Deployment, and its pods.
func TestTheGarbageCollectorDeletesDependents(t *testing.T) {
	inCluster(t, 1, controllers.Config{}, func(t *testing.T, c *cluster) {
		c.deploy("web", 3, template("web", "web:1", ""))
		c.after(time.Minute)
		foreground := metav1.DeletePropagationForeground
		require.NoError(t, c.as.AppsV1().Deployments("default").Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: &foreground}))
		c.after(time.Minute)
		sets, err := c.as.AppsV1().ReplicaSets("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Empty(t, sets.Items)
		require.Empty(t, c.pods(""))
		_, err = c.as.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))
	})
}

// The pod garbage collector deletes the pods of a node that does not exist.
func TestThePodsOfADeletedNodeAreDeleted(t *testing.T) {
	inCluster(t, 2, controllers.Config{Scheduler: true}, func(t *testing.T, c *cluster) {
		c.deploy("web", 4, template("web", "web:1", ""))
		c.after(time.Minute)
		require.NoError(t, c.nodes.Fail("fake-1"))
		require.NoError(t, c.as.CoreV1().Nodes().Delete(t.Context(), "fake-1", metav1.DeleteOptions{}))
		c.after(2 * time.Minute)
		require.Equal(t, "fake-0: 4", nodesOf(c.pods("app=web")))
	})
}

// A namespace has a service account, its quota counts its pods, and it is empty before it
// is deleted.
func TestTheControllersOfANamespace(t *testing.T) {
	inCluster(t, 1, controllers.Config{}, func(t *testing.T, c *cluster) {
		namespaces := c.as.CoreV1().Namespaces()
		_, err := namespaces.Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = c.as.CoreV1().ResourceQuotas("team").Create(t.Context(), &v1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "pods"},
			Spec:       v1.ResourceQuotaSpec{Hard: v1.ResourceList{v1.ResourcePods: resource.MustParse("5")}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = c.as.CoreV1().Pods("team").Create(t.Context(), &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: template("", "web:1", "").Spec,
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		c.after(10 * time.Minute)
		_, err = c.as.CoreV1().ServiceAccounts("team").Get(t.Context(), "default", metav1.GetOptions{})
		require.NoError(t, err)
		quota, err := c.as.CoreV1().ResourceQuotas("team").Get(t.Context(), "pods", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, int64(1), quota.Status.Used.Pods().Value())

		require.NoError(t, namespaces.Delete(t.Context(), "team", metav1.DeleteOptions{}))
		c.after(2 * time.Minute)
		_, err = namespaces.Get(t.Context(), "team", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))
		require.Nil(t, c.api.Pod("team", "web"))
	})
}
