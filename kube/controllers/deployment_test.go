package controllers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/controllers"
)

func TestADeploymentBecomesAvailableAndRollsOut(t *testing.T) {
	inCluster(t, 2, controllers.Config{Scheduler: true}, func(t *testing.T, c *cluster) {
		c.deploy("web", 3, template("web", "web:1", "ready=5s"))
		c.after(4 * time.Second)
		require.Zero(t, c.deployment("web").Status.AvailableReplicas)
		c.after(4 * time.Second)
		require.Equal(t, int32(3), c.deployment("web").Status.AvailableReplicas)
		require.Regexp(t, "fake-0: [12], fake-1: [12]", nodesOf(c.pods("app=web")), "the scheduler spreads them")

		d := c.deployment("web")
		d.Spec.Template.Spec.Containers[0].Image = "web:2"
		_, err := c.as.AppsV1().Deployments("default").Update(t.Context(), d, metav1.UpdateOptions{})
		require.NoError(t, err)
		for range 60 {
			c.after(time.Second)
			require.GreaterOrEqual(t, c.deployment("web").Status.AvailableReplicas, int32(3), "25 %% of 3, rounded down, may be unavailable")
		}
		require.Equal(t, int32(3), c.deployment("web").Status.UpdatedReplicas)
		pods := c.pods("app=web")
		require.Len(t, pods, 3)
		for _, pod := range pods {
			require.Equal(t, "web:2", pod.Spec.Containers[0].Image)
		}
	})
}

// The pods of a failed node are evicted when their tolerations of 300 s end. They terminate
// when the node is back.
func TestThePodsOfAFailedNodeAreReplaced(t *testing.T) {
	inCluster(t, 2, controllers.Config{Scheduler: true}, func(t *testing.T, c *cluster) {
		c.deploy("web", 4, template("web", "web:1", ""))
		c.after(time.Minute)
		require.Equal(t, "fake-0: 2, fake-1: 2", nodesOf(c.pods("app=web")))

		require.NoError(t, c.nodes.Fail("fake-1"))
		c.after(2 * time.Minute)
		require.Contains(t, c.taints("fake-1"), v1.TaintNodeUnreachable)
		require.Equal(t, "fake-0: 2, fake-1: 2", nodesOf(c.pods("app=web")))
		require.Equal(t, int32(2), c.deployment("web").Status.AvailableReplicas)

		c.after(5 * time.Minute)
		require.Equal(t, "fake-0: 4, fake-1: 2", nodesOf(c.pods("app=web")), "those of fake-1 are terminating")
		require.Equal(t, int32(4), c.deployment("web").Status.AvailableReplicas)

		require.NoError(t, c.nodes.Recover(t.Context(), "fake-1"))
		c.after(2 * time.Minute)
		require.Empty(t, c.taints("fake-1"))
		require.Equal(t, "fake-0: 4", nodesOf(c.pods("app=web")))
	})
}

func TestTheGracePeriodOfNodesIsConfigurable(t *testing.T) {
	cfg := controllers.Config{Controllers: []string{"nodelifecycle"}, NodeMonitorGracePeriod: 20 * time.Second}
	inCluster(t, 1, cfg, func(t *testing.T, c *cluster) {
		c.after(time.Minute)
		require.Empty(t, c.taints("fake-0"))
		require.NoError(t, c.nodes.Fail("fake-0"))
		c.after(40 * time.Second) // of 50 s by default
		require.Contains(t, c.taints("fake-0"), v1.TaintNodeUnreachable)
	})
}

// taints returns the keys of the taints of a node.
func (c *cluster) taints(node string) (keys []string) {
	c.t.Helper()
	n, err := c.as.CoreV1().Nodes().Get(c.t.Context(), node, metav1.GetOptions{})
	require.NoError(c.t, err)
	for _, t := range n.Spec.Taints {
		keys = append(keys, t.Key)
	}
	return keys
}
