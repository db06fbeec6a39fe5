package jobs_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/kube/provider/jobs"
	"github.com/kubeparts/kubeparts/runtime"
)

var _ provider.LogStreamer = (*jobs.Runtime)(nil)

func pod(image string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "report", UID: "u"},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyOnFailure, TerminationGracePeriodSeconds: new(int64(30)),
			Containers: []v1.Container{{Name: "main", Image: image}},
		},
	}
}

// A provider reports a pod as pending while its job is queued, and the exit of the job.
func TestAPodRunsAsJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{wait: time.Minute}
		p, err := provider.New(provider.Config{Runtime: over(t, q), NodeName: "batch"})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		after := func(d time.Duration) *v1.PodStatus {
			time.Sleep(d)
			synctest.Wait()
			s, err := p.GetPodStatus(ctx, "default", "report")
			require.NoError(t, err)
			return s
		}
		require.NoError(t, p.CreatePod(ctx, pod("3")))
		s := after(50 * time.Second)
		assert.Equal(t, v1.PodPending, s.Phase)
		assert.NotNil(t, s.ContainerStatuses[0].State.Waiting)
		s = after(15 * time.Second)
		require.NotNil(t, s.ContainerStatuses[0].LastTerminationState.Terminated, "%+v", s)
		assert.EqualValues(t, 3, s.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode)
		assert.Equal(t, []string{"u-main-0", "u-main-1"}, q.ids(), "the restart is in the queue")

		deleted := pod("3")
		deleted.DeletionTimestamp = new(metav1.Now())
		require.NoError(t, p.DeletePod(ctx, deleted))
		time.Sleep(5 * time.Minute)
		assert.Equal(t, []string{"u-main-0", "u-main-1"}, q.ids(), "it was canceled in the queue")
		cancel()
		require.NoError(t, <-done)
	})
}

// lossy loses the response of the first submission.
type lossy struct {
	*queue
	lost bool
}

func (l *lossy) Submit(ctx context.Context, j jobs.Job) error {
	err := l.queue.Submit(ctx, j)
	if !l.lost {
		l.lost = true
		return errors.New("connection reset")
	}
	return err
}

func TestALostResponseStartsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := new(queue)
		rt, err := jobs.New(jobs.Config{Service: &lossy{queue: q}})
		require.NoError(t, err)
		_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod("long")})
		assert.ErrorContains(t, err, "connection reset")
		time.Sleep(time.Second)
		res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod("long")})
		require.NoError(t, err)
		assert.Empty(t, res.Actions)
		assert.Equal(t, []string{"u-main-0"}, q.ids())
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: "u"}))
	})
}

func TestUnsupportedPodsAreErrors(t *testing.T) {
	rt := over(t, new(queue))
	initial := pod("long")
	initial.Spec.InitContainers = []v1.Container{{Name: "first", Image: "0"}}
	_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: initial})
	assert.ErrorIs(t, err, runtime.ErrUnsupported)
	assert.ErrorContains(t, err, "CreateContainerConfigError: \"jobs do not support init containers")
	mounts := pod("long")
	mounts.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: mounts, Volumes: map[string]runtime.Volume{"data": {}}})
	assert.ErrorContains(t, err, "jobs do not support volumes")
	assert.Equal(t, "CreateContainerConfigError", res.Actions[len(res.Actions)-1].Reason)
	hooks := pod("long")
	hooks.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"true"}}}}
	_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: hooks})
	assert.ErrorContains(t, err, "jobs do not support lifecycle hooks")
	assert.Empty(t, rt.queue.ids())
	_, err = jobs.New(jobs.Config{})
	assert.EqualError(t, err, "jobs: Config.Service is nil")
}

// Every pod of a cluster has it, unless automountServiceAccountToken is false.
func TestTheTokenOfTheServiceAccountIsLeftOut(t *testing.T) {
	rt := over(t, new(queue))
	one := pod("long")
	one.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "kube-api-access-x2v9p", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}}
	_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: one})
	require.NoError(t, err)
	assert.Equal(t, []string{"u-main-0"}, rt.queue.ids())
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: "u"}))
}

// A silent service hides the logs.
type silent struct{ jobs.Service }

func (silent) Unwrap() any { return nil }

func TestLogsAreThoseOfTheService(t *testing.T) {
	rt := over(t, new(queue))
	log, err := rt.ContainerLog(t.Context(), "job://u-main-0", &v1.PodLogOptions{})
	require.NoError(t, err)
	text, err := io.ReadAll(log)
	require.NoError(t, err)
	assert.Equal(t, "log of u-main-0", string(text))
	plain, err := jobs.New(jobs.Config{Service: silent{new(queue)}})
	require.NoError(t, err)
	_, err = plain.ContainerLog(t.Context(), "job://u-main-0", &v1.PodLogOptions{})
	assert.ErrorIs(t, err, runtime.ErrUnsupported)
}

// A job that is canceled because its liveness probe failed exits with 0, and is not complete: it starts again, also
// if the restart is delayed.
func TestAJobWhoseProbeFailsStartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := new(queue)
		rt := over(t, q)
		for restarts := range 4 {
			var id string
			for begun := time.Now(); id == ""; time.Sleep(time.Second) {
				require.Less(t, time.Since(begun), 2*time.Minute, "%d restarts", restarts)
				_, _ = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod("graceful")}) // the error is that of a delayed restart
				st, err := rt.PodStatus(t.Context(), "u")
				require.NoError(t, err)
				if newest := st.Containers[0]; newest.RestartCount == int32(restarts) && newest.State == runtime.ContainerRunning {
					id = newest.ID
				}
			}
			probes := &runtime.ProbeResults{Liveness: map[string]runtime.ProbeResult{id: runtime.ProbeFailure}}
			_, _ = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod("graceful"), Probes: probes})
		}
	})
}
