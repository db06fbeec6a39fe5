package controllers_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/controllers"
	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/containers/containerstest"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A machines is a kubelet.NodeReporter.
type machines struct{}

func (machines) NodeInfo(context.Context) (kubelet.NodeInfo, error) {
	return kubelet.NodeInfo{Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("256Gi")}}, nil
}

// A kubelet over a backend is the only node of a cluster with controllers and a scheduler, in real time:
// its listeners and its directory are those of a process.
func TestWorkloadsRunOnAKubeletOverABackend(t *testing.T) {
	api, backend := new(apitest.Server), new(containerstest.Backend)
	backend.Behave("short:1", fake.Behavior{Exit: &fake.Exit{After: 100 * time.Millisecond}})
	rest := api.RESTConfig()
	rest.QPS = -1
	as, err := kubernetes.NewForConfig(rest)
	require.NoError(t, err)
	conn, err := client.ConnectTo(api.RESTConfig(), client.Config{})
	require.NoError(t, err)
	k, err := kubelet.Open(t.Context(), kubelet.Config{
		Configuration: &kubeletconfig.KubeletConfiguration{Address: "127.0.0.1", Port: -1, HealthzPort: new(int32(-1)), EvictionHard: map[string]string{}},
		NodeName:      "vms", RootDir: filepath.Join(t.TempDir(), "root"), Cluster: kubelet.Cluster{Client: conn}, Logger: slog.New(slog.DiscardHandler),
		Runtime: kubelet.Runtime{Name: "machines", Node: machines{}, New: func(engine cri.Config) (runtime.Runtime, error) {
			return containers.New(containers.Config{Backend: backend, Node: "vms", Engine: engine})
		}},
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- k.Run(ctx) }()
	defer func() { stop(); require.NoError(t, <-stopped) }()
	controllers.Start(t.Context(), t, rest, controllers.Config{Scheduler: true})

	tolerating := func(image string) v1.PodTemplateSpec {
		return v1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": strings.TrimSuffix(image, ":1")}},
			Spec: v1.PodSpec{
				AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(1)),
				Tolerations: []v1.Toleration{{Key: "kubeparts.io/runtime", Value: "machines", Effect: v1.TaintEffectNoSchedule}},
				Containers:  []v1.Container{{Name: "main", Image: image}},
			},
		}
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	apps := as.AppsV1()
	deployment := &appsv1.Deployment{ObjectMeta: named("web"), Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: tolerating("web:1"),
	}}
	_, err = apps.Deployments("default").Create(t.Context(), deployment, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = apps.StatefulSets("default").Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: named("db"), Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(2)), ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, Template: tolerating("db:1"),
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	job := &batchv1.Job{ObjectMeta: named("sum"), Spec: batchv1.JobSpec{Completions: new(int32(3)), Parallelism: new(int32(2)), Template: tolerating("short:1")}}
	job.Spec.Template.Spec.RestartPolicy = v1.RestartPolicyNever
	_, err = as.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{})
	require.NoError(t, err)
	for name, template := range map[string]v1.PodTemplateSpec{"agent": tolerating("agent:1"), "other": tolerating("other:1")} {
		if name == "other" {
			template.Spec.Tolerations = nil
		}
		_, err = apps.DaemonSets("default").Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: named(name), Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}

	until := func(what string, is func() bool) {
		t.Helper()
		require.Eventually(t, is, 90*time.Second, 50*time.Millisecond, what)
	}
	until("the Deployment", func() bool {
		d, err := apps.Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 3
	})
	until("the StatefulSet", func() bool {
		s, err := apps.StatefulSets("default").Get(t.Context(), "db", metav1.GetOptions{})
		return err == nil && s.Status.ReadyReplicas == 2
	})
	until("the Job", func() bool {
		j, err := as.BatchV1().Jobs("default").Get(t.Context(), "sum", metav1.GetOptions{})
		return err == nil && j.Status.Succeeded == 3 && j.Status.CompletionTime != nil
	})
	until("the DaemonSet", func() bool {
		d, err := apps.DaemonSets("default").Get(t.Context(), "agent", metav1.GetOptions{})
		return err == nil && d.Status.NumberReady == 1
	})
	other, err := apps.DaemonSets("default").Get(t.Context(), "other", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Zero(t, other.Status.DesiredNumberScheduled, "without a toleration no pod lands there")

	d, err := apps.Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	d.Spec.Template.Spec.Containers[0].Image = "web:2"
	_, err = apps.Deployments("default").Update(t.Context(), d, metav1.UpdateOptions{})
	require.NoError(t, err)
	until("the rollout", func() bool {
		images := map[string]int{}
		for _, c := range backend.Instances() {
			images[c.Image]++
		}
		return images["web:2"] == 3 && images["web:1"] == 0
	})
	assert.NoError(t, backend.Violations())
}
