// Package fakeclient_test tests code that uses the fake client of controller-runtime: its
// pods run on fake nodes. The fake client shares its objects with one of client-go, which
// the nodes use.
package fakeclient_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgofake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeparts/kubeparts/kube/fakenode"
)

func TestPodsOfTheFakeClientRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientset := clientgofake.NewClientset()
		var c client.Client = fake.NewClientBuilder().WithObjectTracker(clientset.Tracker()).Build()
		nodes := fakenode.StartWithClient(t.Context(), t, clientset, fakenode.Config{})

		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
		}
		require.NoError(t, c.Create(t.Context(), pod))
		time.Sleep(time.Second)
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		assert.Equal(t, v1.PodRunning, pod.Status.Phase)
		assert.Equal(t, "fake-0", pod.Spec.NodeName)
		pod.Labels = map[string]string{"seen": "true"}
		require.NoError(t, c.Update(t.Context(), pod))

		require.NoError(t, nodes.OOM("default", "web", "main"))
		time.Sleep(time.Minute)
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		assert.EqualValues(t, 1, pod.Status.ContainerStatuses[0].RestartCount)
		assert.Equal(t, "true", pod.Labels["seen"])

		require.NoError(t, c.Delete(t.Context(), pod))
		assert.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)))
	})
}
