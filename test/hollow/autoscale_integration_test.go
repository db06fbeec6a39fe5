package hollow

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// deployment returns one with a request of 500m, whose pods behave as an annotation specifies.
func deployment(name, behavior string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{fakenode.Annotation: behavior}},
				Spec: v1.PodSpec{NodeSelector: map[string]string{"type": "kwok"}, Containers: []v1.Container{{
					Name: "main", Image: "web:1", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m")}},
				}}},
			},
		},
	}
}

// autoscaler returns one that targets a utilization of 50 % of the CPU requests of a Deployment, and
// does not delay a decrease.
func autoscaler(name string, most int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			MinReplicas:    new(int32(1)), MaxReplicas: most,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: v1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50))},
			}}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(0))}},
		},
	}
}

// The usage that an annotation specifies is scraped by a metrics-server, and a HorizontalPodAutoscaler
// scales by it.
func TestIntegrationADeploymentIsScaledByTheUsageOfHollowNodes(t *testing.T) {
	lab.Need(t, "kubernetes", "kubectl", "metrics-server")
	s := newShared(t, 3)
	s.start("p0")
	t.Log("leases of all nodes after", s.until("leases", func() string { return s.renewed(time.Time{}, nil) }))
	s.control.MetricsServer()
	_, err := s.api.AppsV1().Deployments("default").Create(t.Context(), deployment("web", "cpu=50m,memory=64Mi"), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.api.AutoscalingV2().HorizontalPodAutoscalers("default").Create(t.Context(), autoscaler("web", 4), metav1.CreateOptions{})
	require.NoError(t, err)
	scaled := func(utilization string, within func(int32) bool, replicas int32) {
		t.Helper()
		took := s.until(fmt.Sprintf("%d replicas with a utilization of %s", replicas, utilization), func() string {
			h, err := s.api.AutoscalingV2().HorizontalPodAutoscalers("default").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			d, err := s.api.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			left := fmt.Sprintf("%d of %d replicas are ready, %d desired, conditions %v", d.Status.ReadyReplicas, d.Status.Replicas, h.Status.DesiredReplicas, h.Status.Conditions)
			for _, m := range h.Status.CurrentMetrics {
				if m.Resource == nil || m.Resource.Current.AverageUtilization == nil {
					continue
				}
				percent := *m.Resource.Current.AverageUtilization
				left += fmt.Sprint(", utilization ", percent)
				if within(percent) && h.Status.DesiredReplicas == replicas && d.Status.ReadyReplicas == replicas && d.Status.Replicas == replicas {
					return ""
				}
			}
			return left
		})
		t.Logf("%d replicas with a utilization of %s after %v", replicas, utilization, took.Round(100*time.Millisecond))
	}
	// use changes the annotation of the pods, which are replaced.
	use := func(behavior string) {
		t.Helper()
		patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, fakenode.Annotation, behavior)
		_, err := s.api.AppsV1().Deployments("default").Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	around := func(percent int32) func(int32) bool {
		return func(is int32) bool { return is >= percent-2 && is <= percent+2 }
	}
	scaled("10 %", around(10), 1)
	use("cpu=400m,memory=64Mi")
	scaled("80 %", around(80), 4)
	require.Regexp(t, `(?m)^web-\S+ +(39\d|40\d)m `, s.prints("top", "pods", "--selector=app=web", "--no-headers"))
	use("cpu=50m,memory=64Mi")
	scaled("10 %", around(10), 1)
}
