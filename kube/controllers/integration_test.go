package controllers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/controllers"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// A Deployment of a real API server, on fake nodes.
func TestIntegrationDeploymentOfAnAPIServer(t *testing.T) {
	lab.Need(t, "kubernetes")
	plane := lab.NewControlPlane(t, lab.ControlPlaneConfig{Bare: true})
	api, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	require.NoError(t, err)
	fakenode.Start(t.Context(), t, api, fakenode.Config{Nodes: fakenode.Many(2, fakenode.Node{})})
	controllers.Start(t.Context(), t, api, controllers.Config{})

	as, err := kubernetes.NewForConfig(api)
	require.NoError(t, err)
	labels := map[string]string{"app": "web"}
	deployments := as.AppsV1().Deployments("default")
	_, err = deployments.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		d, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 3
	}, time.Minute, 100*time.Millisecond)

	require.NoError(t, deployments.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		pods, err := as.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0
	}, time.Minute, 100*time.Millisecond, "the garbage collector deletes the ReplicaSet and its pods")
}
