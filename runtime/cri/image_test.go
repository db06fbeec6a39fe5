package cri_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
)

// vault is a set of secrets by name.
type vault map[string]*v1.Secret

func (vault) ConfigMap(context.Context, string, string) (*v1.ConfigMap, error) {
	return nil, errors.New("no")
}
func (v vault) Secret(_ context.Context, _, name string) (*v1.Secret, error) {
	if s := v[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("secret %q not found", name)
}
func (vault) Services(context.Context, string) ([]*v1.Service, bool) { return nil, true }

func pullSecret(name, user, password string) *v1.Secret {
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	s := &v1.Secret{Type: v1.SecretTypeDockerConfigJson, Data: map[string][]byte{
		v1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{"registry.example":{"auth":%q}}}`, auth),
	}}
	s.Name, s.Namespace = name, "prod"
	return s
}

func TestAPodPullsWithItsSecretsAndThenTheNodes(t *testing.T) { // img-14
	f := newFake()
	f.pull = func(_ context.Context, _ string) error {
		if got := f.auths[len(f.auths)-1]; got != "node:n" {
			return errors.New("denied")
		}
		return nil
	}
	ring, err := credentials.FromSecrets([]v1.Secret{*pullSecret("of-the-node", "node", "n")})
	require.NoError(t, err)
	rt, seen := f.engine(t, cri.Config{
		Providers: cri.Providers{Objects: vault{"a": pullSecret("a", "alice", "1"), "b": pullSecret("b", "bob", "2")}},
		Pulls:     cri.PullConfig{Keyring: ring},
	})
	web := container("web")
	web.Image = "registry.example/web:1"
	pod := podOf(web)
	pod.Spec.ImagePullSecrets = []v1.LocalObjectReference{{Name: "a"}, {Name: ""}, {Name: "gone"}, {Name: "b"}}
	syncs(t, rt, pod)
	assert.Equal(t, []string{"alice:1", "bob:2", "node:n"}, f.auths)
	assert.Contains(t, seen.take(), "Warning FailedToRetrieveImagePullSecret : Unable to retrieve some image pull secrets (gone); attempting to pull the image may not succeed.")
	assert.Equal(t, []string{"web"}, f.running())
}

func TestAMissingImageVolumeFailsOnlyTheContainersThatMountIt(t *testing.T) { // img-16
	f := newFake()
	f.has("img:1")
	f.pull = func(context.Context, string) error { return errors.New("no such image") }
	rt, seen := f.engine(t, cri.Config{})
	with := container("with")
	with.VolumeMounts = []v1.VolumeMount{{Name: "model", MountPath: "/model", SubPath: "v1"}}
	pod := podOf(with, container("without"))
	pod.Spec.Volumes = []v1.Volume{{Name: "model", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{
		Reference: "registry.example/model:1", PullPolicy: v1.PullIfNotPresent,
	}}}}
	res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
	require.Error(t, err)
	assert.Equal(t, []string{"without"}, f.running())
	require.Len(t, res.Actions, 3)
	assert.Equal(t, "ErrImagePull", res.Actions[1].Reason)
	assert.Contains(t, seen.take(), "Warning Failed spec.containers{with}: Error: ErrImagePull")

	id := f.has("registry.example/model:1")
	syncs(t, rt, pod)
	m := f.newest("with").Config.Mounts[0]
	assert.Equal(t, "/model", m.ContainerPath)
	assert.Equal(t, id, m.Image.Image)
	assert.Equal(t, "v1", m.ImageSubPath)

	// If no container has to start, the runtime is not called. The kubelet looks up such
	// images in every sync (img-16).
	f.did()
	syncs(t, rt, pod)
	assert.Empty(t, f.did())
}

func TestImagesOfANewPodArePulledWhileItsSandboxIsMade(t *testing.T) { // lq-15
	for _, ahead := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.pull = func(context.Context, string) error { time.Sleep(10 * time.Second); return nil }
			f.before = func(op, _ string) error {
				if op == "RunPodSandbox" {
					time.Sleep(5 * time.Second)
				}
				return nil
			}
			rt, _ := f.engine(t, cri.Config{Pulls: cri.PullConfig{Config: images.Config{MaxParallel: images.Unlimited}, Ahead: ahead}})
			pod := podOf(container("web"), container("db"))
			pod.Spec.Containers[1].Image = "img:2"
			pod.Spec.InitContainers = []v1.Container{container("prepare")}
			pod.Spec.InitContainers[0].Image = "img:3"
			begun := time.Now()
			syncs(t, rt, pod)
			f.exits("prepare", 0)
			syncs(t, rt, pod)
			want := 35 * time.Second
			if ahead {
				want = 10 * time.Second
			}
			assert.Equal(t, want, time.Since(begun))
			assert.Equal(t, []string{"db", "web"}, f.running())
			assert.Equal(t, []string{pod.Name, pod.Name, pod.Name}, f.pulledFor, "a runtime may go by the sandbox that an image is for")
		})
	}
}

func TestADeletionEndsPullsThatAreAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.pull = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		rt, _ := f.engine(t, cri.Config{Pulls: cri.PullConfig{Ahead: true}})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		begun := time.Now()
		_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: podOf(container("web"), container("db"))})
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, time.Minute, time.Since(begun))
	})
}

func TestWithoutASandboxNothingIsPulledAhead(t *testing.T) { // lq-15
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.pull = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		f.before = func(op, _ string) error {
			if op == "RunPodSandbox" {
				time.Sleep(time.Second)
				return errors.New("no network")
			}
			return nil
		}
		rt, _ := f.engine(t, cri.Config{Pulls: cri.PullConfig{Ahead: true}})
		begun := time.Now()
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf(container("web"))})
		require.ErrorContains(t, err, "no network")
		assert.Equal(t, time.Second, time.Since(begun))
	})
}

func TestResetBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.has("img:1")
		f.pull = func(context.Context, string) error { return errors.New("down") }
		rt, _ := f.engine(t, cri.Config{})
		pod := podOf(container("web"), container("db"))
		pod.Spec.Containers[1].Image = "img:2"
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.Error(t, err)
		f.exits("web", 1)
		_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.Error(t, err)
		f.exits("web", 1)
		f.pull = nil
		_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.ErrorContains(t, err, "CrashLoopBackOff")
		require.ErrorContains(t, err, "ImagePullBackOff")
		rt.ResetBackoff(pod, "db")
		_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.ErrorContains(t, err, "CrashLoopBackOff")
		require.Equal(t, []string{"db"}, f.running())
		rt.ResetBackoff(pod, "")
		syncs(t, rt, pod)
		require.Equal(t, []string{"db", "web"}, f.running())
	})
}
