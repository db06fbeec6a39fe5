package jobs_test

import (
	"context"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/provider/jobs"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/resolved"
)

// settings has one ConfigMap.
type settings map[string]string

func (s settings) ConfigMap(_ context.Context, _, name string) (*v1.ConfigMap, error) {
	if name != "settings" {
		return nil, fs.ErrNotExist
	}
	return &v1.ConfigMap{Data: s}, nil
}
func (settings) Secret(context.Context, string, string) (*v1.Secret, error) {
	return nil, fs.ErrNotExist
}
func (settings) Services(context.Context, string) ([]*v1.Service, bool) { return nil, true }

// submitted keeps the jobs as they are submitted.
type submitted struct {
	service
	jobs []jobs.Job
}

func (s *submitted) Submit(ctx context.Context, job jobs.Job) error {
	s.jobs = append(s.jobs, job)
	return s.service.Submit(ctx, job)
}

func TestJobsHaveResolvedVariablesAndFiles(t *testing.T) {
	resolver, err := resolved.New(resolved.Config{Objects: settings{"level": "debug"}})
	require.NoError(t, err)
	batch := new(submitted)
	rt, err := jobs.New(jobs.Config{Service: batch, Resolver: resolver})
	require.NoError(t, err)
	of := func(configMap string, volume v1.VolumeSource) runtime.SyncResult {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "lab", UID: "u1"}, Spec: v1.PodSpec{
			Containers: []v1.Container{{
				Name: "main", Image: "train:1", Args: []string{"--level=$(LEVEL)"},
				Env:          []v1.EnvVar{{Name: "LEVEL", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: configMap}, Key: "level"}}}},
				VolumeMounts: []v1.VolumeMount{{Name: "config", MountPath: "/etc/train"}},
			}},
			Volumes: []v1.Volume{{Name: "config", VolumeSource: volume}},
		}}
		res, _ := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		return res
	}
	files := v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}

	res := of("lost", files)
	assert.Equal(t, "CreateContainerConfigError", res.Actions[len(res.Actions)-1].Reason)
	assert.Equal(t, `configmap "lost" not found`, res.Actions[len(res.Actions)-1].Message)
	res = of("settings", v1.VolumeSource{EmptyDir: new(v1.EmptyDirVolumeSource)})
	assert.Equal(t, `jobs do not support volume "config": it does not consist of files`, res.Actions[len(res.Actions)-1].Message)
	assert.Empty(t, batch.jobs)

	of("settings", files)
	require.Len(t, batch.jobs, 1)
	job := batch.jobs[0]
	assert.Equal(t, []string{"--level=debug"}, job.Resolved.Args)
	assert.Equal(t, "debug", job.Resolved.Env[0].Value)
	assert.Equal(t, "/etc/train", job.Resolved.Mounts[0].Path)
	assert.Equal(t, "debug", string(job.Volumes[0].Files[0].Data))
	assert.True(t, job.Volumes[0].Expiration.IsZero())
}
