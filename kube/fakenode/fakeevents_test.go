package fakenode_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// The scheduler and the node name their first events of a pod by the same instant.
func TestAFakeClientHasTheEventsOfOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset()
		nodes := fakenode.StartWithClient(t.Context(), t, api, fakenode.Config{})
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web:1"}}}}
		_, err := api.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.NoError(t, nodes.Exit("default", "web", "", 1))
		time.Sleep(time.Second)
		list, err := api.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		counts := map[string]int32{}
		for _, e := range list.Items {
			if e.InvolvedObject.Kind == "Node" {
				continue
			}
			counts[e.Reason+": "+e.Message] = e.Count
		}
		assert.Equal(t, map[string]int32{
			"Scheduled: Successfully assigned default/web to fake-0":     1,
			`Pulled: Container image "web:1" already present on machine`: 2,
			"Created: Container created":                                 2,
			"Started: Container started":                                 2,
		}, counts)
	})
}
