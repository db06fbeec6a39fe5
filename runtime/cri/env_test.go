package cri_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// fakeObjects has objects by name, and counts who asks.
type fakeObjects struct {
	maps    map[string]map[string]string
	pending bool
	hangs   func() // is called when a secret is asked for, which never comes
	asked   []string
}

func (o *fakeObjects) ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	o.asked = append(o.asked, namespace+"/"+name)
	if data, ok := o.maps[name]; ok {
		return &v1.ConfigMap{Data: data}, ctx.Err()
	}
	return nil, fmt.Errorf("configmap %w", fs.ErrNotExist)
}

func (o *fakeObjects) Secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	o.hangs()
	<-ctx.Done()
	return nil, ctx.Err()
}

func (o *fakeObjects) Services(namespace string) ([]*v1.Service, bool) {
	return []*v1.Service{{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}, Spec: v1.ServiceSpec{ClusterIP: "10.96.0.7"},
	}}, !o.pending
}

func TestContainersGetWhatTheirEnvironmentRefersTo(t *testing.T) { // pe-2, pe-6, pe-9, pe-12
	f := newFake()
	f.has("img:latest")
	objects := &fakeObjects{maps: map[string]map[string]string{"settings": {"LEVEL": "debug"}}}
	rt, _ := f.engine(t, cri.Config{Objects: objects})
	scratch := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(scratch, "made.env"), []byte("TOKEN='abc'\n"), 0o644))
	pod := podOf(v1.Container{
		Name: "a", Image: "img:latest", ImagePullPolicy: v1.PullIfNotPresent,
		EnvFrom: []v1.EnvFromSource{
			{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}},
			{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "gone"}, Optional: new(true)}},
		},
		Env: []v1.EnvVar{
			{Name: "TOKEN", ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: "scratch", Path: "made.env", Key: "TOKEN"}}},
			{Name: "URL", Value: "pg://$(DB_SERVICE_HOST)"},
		},
	})
	pod.Spec.Volumes = []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Volumes: map[string]string{"scratch": scratch}})
	require.NoError(t, err)
	var lines []string
	for _, kv := range f.newest("a").config.Envs {
		lines = append(lines, kv.Key+"="+string(kv.Value))
	}
	assert.Equal(t, "LEVEL=debug TOKEN=abc URL=pg://10.96.0.7 DB_SERVICE_HOST=10.96.0.7", strings.Join(lines, " "))
	assert.Equal(t, []string{"prod/settings", "prod/gone"}, objects.asked)
}

func TestAContainerWithoutItsEnvironmentWaits(t *testing.T) { // pe-1, pe-6, pe-11
	for _, tc := range []struct {
		name    string
		objects cri.Objects
		want    string
	}{
		{"pe-1", &fakeObjects{pending: true}, "services have not yet been read at least once, cannot construct envvars"},
		{"pe-6 not found", &fakeObjects{}, `configmap "settings" not found`},
		{"pe-6 no key", &fakeObjects{maps: map[string]map[string]string{"settings": {}}}, "couldn't find key LEVEL in ConfigMap prod/settings"},
		{"pe-6 no source", nil, "couldn't get configMap prod/settings, no kubeClient defined"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake()
			f.has("img:latest")
			rt, _ := f.engine(t, cri.Config{Objects: tc.objects})
			pod := podOf(v1.Container{Name: "a", Image: "img:latest", ImagePullPolicy: v1.PullIfNotPresent, Env: []v1.EnvVar{
				{Name: "X", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{
					LocalObjectReference: v1.LocalObjectReference{Name: "settings"}, Key: "LEVEL"}}},
			}})
			res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			require.Error(t, err)
			last := res.Actions[len(res.Actions)-1]
			assert.Equal(t, "CreateContainerConfigError", last.Reason)
			assert.Contains(t, last.Message, tc.want)
			assert.Empty(t, f.running())
		})
	}
}

func TestAnObjectThatNeverComesKeepsNoPodFromGoing(t *testing.T) { // L-15
	f := newFake()
	f.has("img:latest")
	ctx, cancel := context.WithCancel(t.Context())
	rt, _ := f.engine(t, cri.Config{Objects: &fakeObjects{hangs: cancel}})
	pod := podOf(v1.Container{Name: "a", Image: "img:latest", ImagePullPolicy: v1.PullIfNotPresent, EnvFrom: []v1.EnvFromSource{
		{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "s"}, Optional: new(true)}},
	}})
	_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
	assert.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, f.running())
}
