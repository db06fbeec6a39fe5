package controllers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/kubeparts/kubeparts/kube/controllers"
	"github.com/kubeparts/kubeparts/kube/hollow"
)

// A pod uses 80 % of its request for twenty minutes, and then next to nothing.
func TestADeploymentIsScaledByTheUsageOfItsPods(t *testing.T) {
	inCluster(t, 2, controllers.Config{}, func(t *testing.T, c *cluster) {
		require.NoError(t, c.api.Aggregate(hollow.Metrics(c.nodes)))
		pod := template("web", "web:1", "cpu=400m;400m@20m;10m@21m,memory=64Mi")
		pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m")}
		c.deploy("web", 1, pod)
		_, err := c.as.AutoscalingV2().HorizontalPodAutoscalers("default").Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				MinReplicas:    new(int32(1)), MaxReplicas: 4,
				Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
					Name: v1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50))},
				}}},
			},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		running := func() int { return len(c.pods("app=web")) }
		c.after(2 * time.Minute)
		assert.Equal(t, 4, running(), "80 % is more than 50 %")
		c.after(15 * time.Minute)
		assert.Equal(t, 4, running())
		c.after(15 * time.Minute)
		assert.Equal(t, 1, running())
		autoscaler, err := c.as.AutoscalingV2().HorizontalPodAutoscalers("default").Get(t.Context(), "web", metav1.GetOptions{})
		require.NoError(t, err)
		assert.EqualValues(t, 2, *autoscaler.Status.CurrentMetrics[0].Resource.Current.AverageUtilization)

		metrics, err := versioned.NewForConfig(c.api.RESTConfig())
		require.NoError(t, err)
		pods, err := metrics.MetricsV1beta1().PodMetricses("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
		require.NoError(t, err)
		require.Len(t, pods.Items, 1)
		assert.Equal(t, "64Mi", pods.Items[0].Containers[0].Usage.Memory().String())
		nodes, err := metrics.MetricsV1beta1().NodeMetricses().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Len(t, nodes.Items, 2)
	})
}
