package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/controllers"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// A cluster has an API server in memory, fake nodes and controllers, in virtual time.
type cluster struct {
	t     *testing.T
	api   *apitest.Server
	as    kubernetes.Interface // of the test, without limits
	nodes *fakenode.Nodes
}

// inCluster runs a test in a new cluster.
func inCluster(t *testing.T, nodes int, cfg controllers.Config, test func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, api: new(apitest.Server)}
		rest := c.api.RESTConfig()
		rest.QPS = -1
		var err error
		c.as, err = kubernetes.NewForConfig(rest)
		require.NoError(t, err)
		c.nodes = fakenode.Start(t.Context(), t, rest, fakenode.Config{Nodes: fakenode.Many(nodes, fakenode.Node{}), NoScheduler: cfg.Scheduler})
		controllers.Start(t.Context(), t, rest, cfg)
		test(t, c)
	})
}

// after lets time pass.
func (c *cluster) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// pods returns the pods that a label selector selects.
func (c *cluster) pods(selector string) []v1.Pod {
	c.t.Helper()
	list, err := c.as.CoreV1().Pods("default").List(c.t.Context(), metav1.ListOptions{LabelSelector: selector})
	require.NoError(c.t, err)
	return list.Items
}

// names returns the names of pods.
func names(pods []v1.Pod) (list []string) {
	for _, p := range pods {
		list = append(list, p.Name)
	}
	return list
}

// nodesOf returns how many pods are on each node, such as "fake-0: 2, fake-1: 1".
func nodesOf(pods []v1.Pod) string {
	on := map[string]int{}
	for _, p := range pods {
		on[p.Spec.NodeName]++
	}
	var list []string
	for name, n := range on {
		list = append(list, fmt.Sprintf("%s: %d", name, n))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// template returns the template of pods with the label app and one container, which
// behaves as specified.
func template(app, image, behavior string) v1.PodTemplateSpec {
	out := v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: image}}},
	}
	if behavior != "" {
		out.Annotations = map[string]string{fakenode.Annotation: behavior}
	}
	return out
}

// selector selects the pods of a template.
func selector(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// deploy creates a Deployment.
func (c *cluster) deploy(name string, replicas int32, template v1.PodTemplateSpec) *appsv1.Deployment {
	c.t.Helper()
	d, err := c.as.AppsV1().Deployments("default").Create(c.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector(name), Template: template},
	}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	return d
}

// deployment returns the present state of a Deployment.
func (c *cluster) deployment(name string) *appsv1.Deployment {
	c.t.Helper()
	d, err := c.as.AppsV1().Deployments("default").Get(c.t.Context(), name, metav1.GetOptions{})
	require.NoError(c.t, err)
	return d
}
