package fakenode_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kubeparts/kubeparts/kube/fakenode"
)

func plainPod(name, behavior string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: map[string]string{fakenode.Annotation: behavior}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
	}
}

// Pods of a fake client, whether they exist or are created later, live as those of an API
// server.
func TestPodsOfAFakeClientRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset(plainPod("early", ""))
		nodes := fakenode.StartWithClient(t.Context(), t, api, fakenode.Config{Nodes: fakenode.Many(2, fakenode.Node{})})
		pods := api.CoreV1().Pods("default")
		get := func(name string) *v1.Pod {
			pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err)
			return pod
		}
		_, err := pods.Create(t.Context(), plainPod("late", "exit=1@30s"), metav1.CreateOptions{})
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		early, late := get("early"), get("late")
		for _, pod := range []*v1.Pod{early, late} {
			assert.Equal(t, v1.PodRunning, pod.Status.Phase, pod.Name)
			assert.Equal(t, v1.ConditionTrue, condition(pod, v1.PodReady))
			assert.Equal(t, v1.ConditionTrue, condition(pod, v1.PodScheduled))
			assert.NotEmpty(t, pod.UID)
			assert.NotZero(t, pod.CreationTimestamp)
		}
		assert.NotEqual(t, early.Spec.NodeName, late.Spec.NodeName)
		assert.NotEqual(t, early.UID, late.UID)
		time.Sleep(time.Minute)
		assert.EqualValues(t, 1, get("late").Status.ContainerStatuses[0].RestartCount)
		lease, err := api.CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "fake-0", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Less(t, time.Since(lease.Spec.RenewTime.Time), 11*time.Second)

		require.NoError(t, nodes.Evict(t.Context(), "default", "early", ""))
		time.Sleep(time.Second)
		assert.Equal(t, "Evicted", get("early").Status.Reason)

		on := late.Spec.NodeName
		require.NoError(t, nodes.Drain(t.Context(), on))
		_, err = pods.Get(t.Context(), "late", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), "a fake client deletes it at once")
		_, err = pods.Create(t.Context(), plainPod("late", ""), metav1.CreateOptions{})
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		assert.NotEqual(t, on, get("late").Spec.NodeName)
		assert.Equal(t, v1.PodRunning, get("late").Status.Phase, "another pod of this name")

		nodes.Stop()
		list, err := api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Empty(t, list.Items)
	})
}

// The watch of a fake client panics when 100 events are not received.
func TestManyPodsOfAFakeClientAreCreatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset()
		fakenode.StartWithClient(t.Context(), t, api, fakenode.Config{Nodes: fakenode.Many(4, fakenode.Node{}), API: fakenode.API{NoEvents: true}})
		for i := range 150 {
			_, err := api.CoreV1().Pods("default").Create(t.Context(), plainPod(fmt.Sprint("web-", i), ""), metav1.CreateOptions{})
			require.NoError(t, err)
		}
		time.Sleep(10 * time.Second)
		list, err := api.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, 150)
		for i := range list.Items {
			assert.Equal(t, v1.PodRunning, list.Items[i].Status.Phase, list.Items[i].Name)
		}
	})
}

func TestInvalidClientsAreErrors(t *testing.T) {
	_, err := fakenode.NewWithClient(nil, fakenode.Config{})
	assert.EqualError(t, err, "fakenode: the client is nil")
	_, err = fakenode.NewWithClient(fake.NewClientset(), fakenode.Config{API: fakenode.API{OwnWatches: true}})
	assert.EqualError(t, err, "fakenode: Config.API.OwnWatches is set, but a fake client does not select pods by node")
}
