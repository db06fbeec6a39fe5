package controllers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeparts/kubeparts/kube/controllers"
	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/kube/trace"
)

// A trace as SimKube records it, of a Deployment that is scaled and a CronJob whose pods ran for
// half a minute, is played with the real controllers: two hours in virtual time.
func TestATraceIsPlayedInVirtualTime(t *testing.T) {
	web := func(replicas int32) *unstructured.Unstructured {
		return toUnstructured(t, "apps/v1", "Deployment", &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template("web", "web:1", "")},
		})
	}
	job := template("report", "report:1", "")
	job.Spec.RestartPolicy = v1.RestartPolicyNever
	report := toUnstructured(t, "batch/v1", "CronJob", &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "report"},
		Spec: batchv1.CronJobSpec{
			Schedule: "*/10 * * * *", SuccessfulJobsHistoryLimit: new(int32(100)),
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: job}},
		},
	})
	history := &trace.Trace{
		Events: []trace.Event{
			{Applied: []*unstructured.Unstructured{web(2), report}},
			{At: 30 * time.Minute, Applied: []*unstructured.Unstructured{web(5)}},
			{At: 61 * time.Minute, Deleted: []*unstructured.Unstructured{report}},
			{At: 2 * time.Hour, Applied: []*unstructured.Unstructured{web(1)}},
		},
		Lifetimes: map[trace.Owner][]time.Duration{
			{APIVersion: "batch/v1", Kind: "CronJob", Namespace: "default", Name: "report"}: {20 * time.Second, 30 * time.Second, 40 * time.Second},
			{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web"}:  {time.Second}, // restarted for ever: ignored
		},
	}
	history.SetBehaviors(fakenode.Annotation)

	inCluster(t, 2, controllers.Config{}, func(t *testing.T, c *cluster) {
		began := time.Now()
		player, err := trace.NewPlayer(c.api.RESTConfig(), trace.Config{})
		require.NoError(t, err)
		played := make(chan error, 1)
		go func() { played <- player.Play(t.Context(), history) }()

		c.after(29 * time.Minute)
		require.Len(t, c.pods("app=web"), 2)
		c.after(2 * time.Minute)
		require.Len(t, c.pods("app=web"), 5)
		for _, p := range c.pods("app=web") {
			assert.Zero(t, p.Status.ContainerStatuses[0].RestartCount)
		}
		c.after(29 * time.Minute)
		reports := c.pods("app=report")
		require.Len(t, reports, 6)
		for _, p := range reports[:5] { // the last one may be running
			state := p.Status.ContainerStatuses[0].State.Terminated
			require.NotNil(t, state, p.Name)
			assert.Equal(t, 30*time.Second, state.FinishedAt.Sub(state.StartedAt.Time).Round(time.Second))
		}
		require.NoError(t, <-played)
		assert.Equal(t, 2*time.Hour, time.Since(began))
		c.after(time.Minute)
		assert.Len(t, c.pods("app=web"), 1)
		assert.Empty(t, c.pods("app=report"), "the CronJob was deleted, and its Jobs and pods with it")
	})
}

func toUnstructured(t *testing.T, apiVersion, kind string, o any) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: fields}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	assert.NotEmpty(t, u.GetName())
	return u
}
