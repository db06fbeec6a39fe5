package apitest_test

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

func newPod(name, node string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name},
		Spec:       v1.PodSpec{NodeName: node, Containers: []v1.Container{{Name: "main", Image: "nginx"}}},
	}
}

func connect(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	return c
}

func TestObjectsAreWrittenAndRead(t *testing.T) {
	for _, mime := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		api := new(apitest.Server)
		network := httptest.NewServer(api)
		defer network.Close()
		pods := connect(t, &rest.Config{Host: network.URL, ContentConfig: rest.ContentConfig{ContentType: mime, AcceptContentTypes: mime}}).CoreV1().Pods("prod")
		made, err := pods.Create(t.Context(), newPod("web", "n1"), metav1.CreateOptions{})
		require.NoError(t, err)
		assert.EqualValues(t, "uid-1", made.UID)
		_, err = pods.Create(t.Context(), newPod("web", "n1"), metav1.CreateOptions{})
		require.True(t, apierrors.IsAlreadyExists(err))

		made.Labels = map[string]string{"a": "b"}
		made.Status.Phase = v1.PodRunning
		changed, err := pods.Update(t.Context(), made, metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.Equal(t, "b", changed.Labels["a"])
		assert.Equal(t, v1.PodPending, changed.Status.Phase, "that is the subresource's")
		_, err = pods.Update(t.Context(), made, metav1.UpdateOptions{})
		require.True(t, apierrors.IsConflict(err), "it is of an older version")
		changed.Spec.NodeName, changed.Status.Phase = "n2", v1.PodRunning
		changed, err = pods.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.Equal(t, "n1", changed.Spec.NodeName)
		assert.Equal(t, v1.PodRunning, changed.Status.Phase)
		unconditional := changed.DeepCopy()
		unconditional.ResourceVersion = "0"
		changed, err = pods.UpdateStatus(t.Context(), unconditional, metav1.UpdateOptions{})
		require.NoError(t, err)

		_, err = pods.Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(`{"metadata":{"uid":"another"}}`), metav1.PatchOptions{}, "status")
		require.True(t, apierrors.IsConflict(err))
		same, err := pods.Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(`{"metadata":{"uid":"uid-1"}}`), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		assert.Equal(t, changed.ResourceVersion, same.ResourceVersion, "nothing happened")

		list, err := pods.List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=Running,spec.nodeName=n1"})
		require.NoError(t, err)
		assert.Len(t, list.Items, 1)
		list, err = pods.List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=Pending"})
		require.NoError(t, err)
		assert.Empty(t, list.Items)

		require.NoError(t, pods.Delete(t.Context(), "web", metav1.DeleteOptions{}))
		going := api.Pod("prod", "web")
		require.NotNil(t, going.DeletionTimestamp, "with the grace that there is by default")
		assert.EqualValues(t, 30, *going.DeletionGracePeriodSeconds)
		err = pods.Delete(t.Context(), "web", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")})
		require.True(t, apierrors.IsConflict(err))
		require.NoError(t, pods.Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
		_, err = pods.Get(t.Context(), "web", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))
		assert.NotEmpty(t, api.Calls("patch", "pods/status", "prod/web"))
	}
}

func TestAWatchAppliesItsSelector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		pods := connect(t, api.RESTConfig()).CoreV1().Pods("")
		w, err := pods.Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=n1", ResourceVersion: "0"})
		require.NoError(t, err)
		next := func() string {
			e := <-w.ResultChan()
			pod, _ := e.Object.(*v1.Pod)
			if pod == nil {
				return string(e.Type)
			}
			return string(e.Type) + " " + pod.Name
		}
		api.Put(newPod("web", ""))
		api.Put(newPod("web", "n1"))
		assert.Equal(t, "ADDED web", next())
		api.Put(newPod("web", "n1"))
		assert.Equal(t, "MODIFIED web", next())
		api.Put(newPod("web", "n2"))
		assert.Equal(t, "DELETED web", next())
		api.Put(newPod("web", "n1"))
		assert.Equal(t, "ADDED web", next())
		api.Remove("pods", "prod", "web")
		assert.Equal(t, "DELETED web", next())
		assert.Equal(t, 1, api.Watches("pods"))
		api.Compact()
		assert.Equal(t, string(watch.Error), next())
		synctest.Wait()
		assert.Zero(t, api.Watches())

		w, err = pods.Watch(t.Context(), metav1.ListOptions{TimeoutSeconds: new(int64(60))})
		require.NoError(t, err)
		begin := time.Now()
		_, open := <-w.ResultChan()
		assert.False(t, open)
		assert.Equal(t, time.Minute, time.Since(begin))
	})
}

func TestUnservedPathsAreNotFound(t *testing.T) {
	c := connect(t, new(apitest.Server).RESTConfig())
	for _, path := range []string{
		"/api/v2/pods", "/api/v1/gizmos", "/apis/apps/v1beta1/deployments", "/apis/apps/v1/namespaces/prod/nodes",
		"/api/v1/namespaces/prod/pods/web/scale", "/api/v1/namespaces/prod/pods/web/status/more", "/nothing",
	} {
		err := c.CoreV1().RESTClient().Get().AbsPath(path).Do(t.Context()).Error() // plain text or a Status
		assert.True(t, apierrors.IsNotFound(err), "%s: %v", path, err)
	}
	assert.Panics(t, func() { new(apitest.Server).Put(&v1.Binding{}) })
}
