package controllers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/controllers"
)

// The endpoints of a Service follow the readiness of its pods.
func TestTheEndpointsOfAServiceAreItsReadyPods(t *testing.T) {
	inCluster(t, 1, controllers.Config{}, func(t *testing.T, c *cluster) {
		_, err := c.as.CoreV1().Services("default").Create(t.Context(), &v1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       v1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []v1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		c.deploy("web", 2, template("web", "web:1", ""))
		c.after(10 * time.Second)
		ready, all := c.endpoints("web")
		require.Equal(t, []int{2, 2}, []int{ready, all})
		legacy, err := c.as.CoreV1().Endpoints("default").Get(t.Context(), "web", metav1.GetOptions{})
		require.NoError(t, err)
		require.Len(t, legacy.Subsets[0].Addresses, 2)

		require.NoError(t, c.nodes.SetReady("default", c.pods("app=web")[0].Name, false))
		c.after(10 * time.Second)
		ready, all = c.endpoints("web")
		require.Equal(t, []int{1, 2}, []int{ready, all})
	})
}

// endpoints returns the numbers of ready and of all endpoints of a Service.
func (c *cluster) endpoints(service string) (ready, all int) {
	c.t.Helper()
	slices, err := c.as.DiscoveryV1().EndpointSlices("default").List(c.t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	require.NoError(c.t, err)
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			all++
			if *endpoint.Conditions.Ready {
				ready++
			}
		}
	}
	return ready, all
}
