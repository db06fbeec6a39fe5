package controllers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/controllers"
)

// runJob creates a Job whose containers behave as specified, waits, and returns it.
func (c *cluster) runJob(spec batchv1.JobSpec, behavior string, wait time.Duration) *batchv1.Job {
	c.t.Helper()
	spec.Template = template("job", "job:1", behavior)
	spec.Template.Spec.RestartPolicy = v1.RestartPolicyNever
	jobs := c.as.BatchV1().Jobs("default")
	_, err := jobs.Create(c.t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: spec}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	c.after(wait)
	job, err := jobs.Get(c.t.Context(), "job", metav1.GetOptions{})
	require.NoError(c.t, err)
	return job
}

// failure returns the reason for which a Job has failed; "" if it has not.
func failure(job *batchv1.Job) string {
	for _, condition := range job.Status.Conditions {
		if condition.Type == batchv1.JobFailed && condition.Status == v1.ConditionTrue {
			return condition.Reason
		}
	}
	return ""
}

func TestAJobCompletes(t *testing.T) {
	inCluster(t, 1, controllers.Config{}, func(t *testing.T, c *cluster) {
		job := c.runJob(batchv1.JobSpec{Completions: new(int32(3)), Parallelism: new(int32(2)), TTLSecondsAfterFinished: new(int32(600))}, "exit=0@10s", time.Minute)
		require.Equal(t, int32(3), job.Status.Succeeded)
		require.NotNil(t, job.Status.CompletionTime)
		require.Len(t, c.pods(""), 3)

		c.after(10 * time.Minute)
		require.Empty(t, c.pods(""), "the Job and its pods are deleted after their time to live")
	})
}

func TestAJobFailsAfterItsBackoffLimit(t *testing.T) {
	inCluster(t, 1, controllers.Config{}, func(t *testing.T, c *cluster) {
		job := c.runJob(batchv1.JobSpec{BackoffLimit: new(int32(2))}, "exit=1@1s", 25*time.Second)
		require.Equal(t, int32(2), job.Status.Failed, "the third pod is delayed by 20 s")
		require.Empty(t, failure(job))
		c.after(time.Minute)
		job, err := c.as.BatchV1().Jobs("default").Get(t.Context(), "job", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, int32(3), job.Status.Failed)
		require.Equal(t, batchv1.JobReasonBackoffLimitExceeded, failure(job))
	})
}

func TestAPodFailurePolicyFailsAJob(t *testing.T) {
	inCluster(t, 1, controllers.Config{}, func(t *testing.T, c *cluster) {
		policy := &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action:      batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}},
		}}}
		job := c.runJob(batchv1.JobSpec{BackoffLimit: new(int32(6)), PodFailurePolicy: policy}, "exit=42@1s", 30*time.Second)
		require.Equal(t, int32(1), job.Status.Failed)
		require.Equal(t, batchv1.JobReasonPodFailurePolicy, failure(job))
	})
}

// A virtual day of a CronJob, which keeps the last three Jobs.
func TestACronJobRunsEachHour(t *testing.T) {
	inCluster(t, 1, controllers.Config{Controllers: []string{"cronjob", "job"}}, func(t *testing.T, c *cluster) {
		spec := batchv1.JobSpec{Template: template("backup", "backup:1", "exit=0@1m")}
		spec.Template.Spec.RestartPolicy = v1.RestartPolicyNever
		cronJobs := c.as.BatchV1().CronJobs("default")
		_, err := cronJobs.Create(t.Context(), &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: "backup"},
			Spec:       batchv1.CronJobSpec{Schedule: "30 * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: spec}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		runs := map[string]bool{}
		for range 24 {
			c.after(time.Hour)
			jobs, err := c.as.BatchV1().Jobs("default").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.LessOrEqual(t, len(jobs.Items), 3)
			for _, job := range jobs.Items {
				require.Equal(t, int32(1), job.Status.Succeeded)
				runs[job.Name] = true
			}
		}
		require.Len(t, runs, 24)
		require.Len(t, c.pods("app=backup"), 3)
	})
}
