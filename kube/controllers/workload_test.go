package controllers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/controllers"
)

// Each pod of a StatefulSet is created when the one before it is ready, and keeps its name.
func TestAStatefulSetStartsItsPodsInOrder(t *testing.T) {
	inCluster(t, 2, controllers.Config{}, func(t *testing.T, c *cluster) {
		sets := c.as.AppsV1().StatefulSets("default")
		_, err := sets.Create(t.Context(), &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: "db"},
			Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(3)), Selector: selector("db"), ServiceName: "db", Template: template("db", "db:1", "ready=10s")},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		c.after(8 * time.Second)
		require.Equal(t, []string{"db-0"}, names(c.pods("app=db")))
		c.after(10 * time.Second)
		require.Equal(t, []string{"db-0", "db-1"}, names(c.pods("app=db")))
		c.after(20 * time.Second)
		require.Equal(t, []string{"db-0", "db-1", "db-2"}, names(c.pods("app=db")))

		require.NoError(t, c.as.CoreV1().Pods("default").Delete(t.Context(), "db-1", metav1.DeleteOptions{}))
		c.after(time.Minute)
		set, err := sets.Get(t.Context(), "db", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, int32(3), set.Status.ReadyReplicas)
		require.Equal(t, []string{"db-0", "db-1", "db-2"}, names(c.pods("app=db")))
	})
}

func TestADaemonSetRunsOnEachNode(t *testing.T) {
	inCluster(t, 3, controllers.Config{Scheduler: true}, func(t *testing.T, c *cluster) {
		_, err := c.as.AppsV1().DaemonSets("default").Create(t.Context(), &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "log"},
			Spec:       appsv1.DaemonSetSpec{Selector: selector("log"), Template: template("log", "log:1", "")},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		c.after(time.Minute)
		require.Equal(t, "fake-0: 1, fake-1: 1, fake-2: 1", nodesOf(c.pods("app=log")))
		set, err := c.as.AppsV1().DaemonSets("default").Get(t.Context(), "log", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, int32(3), set.Status.NumberAvailable)
	})
}

func TestAReplicationControllerCreatesItsPods(t *testing.T) {
	inCluster(t, 1, controllers.Config{}, func(t *testing.T, c *cluster) {
		pods := template("old", "old:1", "")
		_, err := c.as.CoreV1().ReplicationControllers("default").Create(t.Context(), &v1.ReplicationController{
			ObjectMeta: metav1.ObjectMeta{Name: "old"}, Spec: v1.ReplicationControllerSpec{Replicas: new(int32(2)), Selector: pods.Labels, Template: &pods},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		c.after(time.Minute)
		require.Len(t, c.pods("app=old"), 2)
	})
}

func TestAnEphemeralVolumeHasAClaim(t *testing.T) {
	inCluster(t, 1, controllers.Config{}, func(t *testing.T, c *cluster) {
		spec := template("", "web:1", "").Spec
		spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{
			VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{Spec: v1.PersistentVolumeClaimSpec{
				AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
				Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
			}},
		}}}}
		_, err := c.as.CoreV1().Pods("default").Create(t.Context(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: spec}, metav1.CreateOptions{})
		require.NoError(t, err)
		c.after(time.Minute)
		_, err = c.as.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), "web-data", metav1.GetOptions{})
		require.NoError(t, err)
	})
}
