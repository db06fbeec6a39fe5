package cri_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// cluster has one ConfigMap, one Secret and one Service, in the namespace prod.
type cluster struct{ pending bool }

func (cluster) ConfigMap(_ context.Context, namespace, name string) (*v1.ConfigMap, error) {
	if namespace != "prod" || name != "conf" {
		return nil, fs.ErrNotExist
	}
	return &v1.ConfigMap{Data: map[string]string{"COLOR": "blue"}}, nil
}

func (cluster) Secret(_ context.Context, namespace, name string) (*v1.Secret, error) {
	if namespace != "prod" || name != "key" {
		return nil, fs.ErrNotExist
	}
	return &v1.Secret{Data: map[string][]byte{"token": []byte("s3cret")}}, nil
}

func (c cluster) Services(context.Context, string) ([]*v1.Service, bool) {
	db := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "prod"}, Spec: v1.ServiceSpec{
		ClusterIP: "10.0.0.9", Ports: []v1.ServicePort{{Port: 5432, Protocol: v1.ProtocolTCP}},
	}}
	return []*v1.Service{db}, !c.pending
}

func TestTheEnvironmentComesFromObjects(t *testing.T) { // pe-1 … pe-12
	f := newFake()
	f.has("img:1")
	rt, _ := f.engine(t, cri.Config{Providers: cri.Providers{Objects: cluster{}}})
	volume := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(volume, "app.env"), []byte("LEVEL='debug'\n"), 0o600))
	web := container("web")
	web.EnvFrom = []v1.EnvFromSource{
		{Prefix: "C_", ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "conf"}}},
		{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "gone"}, Optional: new(true)}},
	}
	web.Env = []v1.EnvVar{
		{Name: "TOKEN", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{
			LocalObjectReference: v1.LocalObjectReference{Name: "key"}, Key: "token"}}},
		{Name: "LEVEL", ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: "env", Path: "app.env", Key: "LEVEL"}}},
		{Name: "DB", Value: "$(DB_SERVICE_HOST):$(DB_SERVICE_PORT)"},
	}
	pod := podOf(web)
	pod.Spec.Volumes = []v1.Volume{{Name: "env", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Volumes: map[string]runtime.Volume{"env": {Path: volume}}})
	require.NoError(t, err)
	env := map[string]string{}
	for _, kv := range f.newest("web").Config.Envs {
		env[kv.Key] = string(kv.Value)
	}
	assert.Equal(t, "blue", env["C_COLOR"])
	assert.Equal(t, "s3cret", env["TOKEN"])
	assert.Equal(t, "debug", env["LEVEL"])
	assert.Equal(t, "10.0.0.9:5432", env["DB"])
	assert.Equal(t, "tcp://10.0.0.9:5432", env["DB_PORT"])
}

func TestAContainerWaitsForItsObjects(t *testing.T) { // pe-1, pe-6, pe-11
	for _, tc := range []struct {
		objects cri.Objects
		secret  string
		want    string
	}{
		{nil, "key", "couldn't get secret prod/key, no kubeClient defined"},
		{cluster{}, "gone", `secret "gone" not found`},
		{cluster{pending: true}, "key", "services have not yet been read at least once, cannot construct envvars"},
	} {
		f := newFake()
		f.has("img:1")
		rt, seen := f.engine(t, cri.Config{Providers: cri.Providers{Objects: tc.objects}})
		web := container("web")
		web.Env = []v1.EnvVar{{Name: "TOKEN", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{
			LocalObjectReference: v1.LocalObjectReference{Name: tc.secret}, Key: "token"}}}}
		res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf(web)})
		require.Error(t, err)
		assert.Equal(t, "CreateContainerConfigError", res.Actions[1].Reason)
		assert.Contains(t, res.Actions[1].Message, tc.want)
		assert.Contains(t, seen.take(), "Warning Failed spec.containers{web}: Error: "+res.Actions[1].Message)
	}
}

// silent is a cluster that does not respond to requests for secrets.
type silent struct {
	cluster
	asked func()
}

func (s silent) Secret(ctx context.Context, _, _ string) (*v1.Secret, error) {
	s.asked()
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAMissingObjectDoesNotDelayADeletion(t *testing.T) {
	f := newFake()
	f.has("img:1")
	ctx, cancel := context.WithCancel(t.Context())
	rt, _ := f.engine(t, cri.Config{Providers: cri.Providers{Objects: silent{asked: cancel}}})
	web := container("web")
	web.EnvFrom = []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{
		LocalObjectReference: v1.LocalObjectReference{Name: "key"}, Optional: new(true)}}}
	_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: podOf(web)})
	assert.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, f.running())
}
