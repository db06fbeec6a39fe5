package hollow

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// With an API server in memory and in virtual time.
func TestHollowNodesInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		rest := api.RESTConfig()
		rest.QPS = -1
		other, err := kubernetes.NewForConfig(rest)
		require.NoError(t, err)
		var out bytes.Buffer
		o := options{nodes: 10, pods: 100, name: "hollow"}
		nodes, err := newInProcess(o, api.RESTConfig())
		require.NoError(t, err)
		h := newHollow(o, other, nodes, &out)
		require.NoError(t, h.start(t.Context()))
		require.NoError(t, h.createPods(t.Context()))
		require.NoError(t, h.until(t.Context(), "pods are running", 100, h.running))
		assert.Equal(t, 1, api.Watches("pods"), "one watch for all nodes")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		restarts := map[bool]int32{}
		for i := range 100 {
			pod := api.Pod("hollow", h.pod(i).Name)
			require.Equal(t, v1.PodRunning, pod.Status.Phase, pod.Name)
			assert.Equal(t, h.nodes.Names()[i%10], pod.Spec.NodeName)
			restarts[h.behavior(i) == "run" || h.behavior(i) == "flap=20s"] += pod.Status.ContainerStatuses[0].RestartCount
		}
		assert.Zero(t, restarts[true])
		assert.Greater(t, restarts[false], int32(10))
		require.NoError(t, h.remove(t.Context()))
		assert.Empty(t, api.List("nodes"))
		assert.Contains(t, out.String(), "10/10 nodes are ready")
	})
}

func TestEveryBehaviorIsValid(t *testing.T) {
	for i := range 20 {
		_, err := fake.ParseBehavior(new(hollow).behavior(i))
		assert.NoError(t, err)
	}
}
