package cri_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
)

// pulls returns an engine on a containerd of the test's own, and a registry. The
// namespace has a pull secret for each user of the registry.
func pulls(t *testing.T, users ...string) (*cri.Runtime, *lab.Registry, *remote.Client, *events, string) {
	t.Helper()
	daemon := lab.Containerd(t, lab.ContainerdConfig{})
	client, err := remote.Dial(t.Context(), daemon.Endpoint, remote.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })
	registry, secrets := lab.NewRegistry(t), vault{}
	for _, user := range users {
		secret := &v1.Secret{Type: v1.SecretTypeDockerConfigJson, Data: map[string][]byte{
			v1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{%q:{"username":%q,"password":%q}}}`, registry.Host, user, lab.RegistryPassword),
		}}
		secret.Name, secret.Namespace, secret.UID = user, "prod", types.UID("uid-"+user)
		secrets[user] = secret
	}
	dir, seen := t.TempDir(), new(events)
	rt, err := cri.New(cri.Config{
		Name: client.Name, Runtime: client.Runtime, Images: client.Images, Record: seen.record,
		Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/pods"}, Providers: cri.Providers{Objects: secrets},
	})
	require.NoError(t, err)
	return rt, registry, client, seen, dir
}

// one returns a pod of one container that pulls its image.
// imagePullSecrets are its secrets.
func one(name, image string, policy v1.PullPolicy, imagePullSecrets ...string) *v1.Pod {
	c := script("web", "trap 'exit 0' TERM; while true; do sleep 0.1; done")
	c.Image, c.ImagePullPolicy = image, policy
	pod := podOf(c)
	pod.Name, pod.UID = name, types.UID(fmt.Sprintf("it-%d", time.Now().UnixNano()))
	for _, secret := range imagePullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, v1.LocalObjectReference{Name: secret})
	}
	return pod
}

func TestIntegrationImagesArePulledWithAndWithoutCredentials(t *testing.T) {
	rt, registry, _, seen, dir := pulls(t, "ann", "eve")
	public, private := registry.PushBusybox("tool:1"), registry.PushBusybox("team/tool:1", "ann")
	kill := func(pod *v1.Pod) {
		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod, GracePeriodSeconds: new(int64(0))}))
	}
	sync := func(pod *v1.Pod) (reported string, err error) {
		t.Helper()
		defer kill(pod)
		_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		return strings.Join(seen.take(), "\n"), err
	}

	reported, err := sync(one("anonymous", public, v1.PullIfNotPresent))
	require.NoError(t, err)
	assert.Contains(t, reported, fmt.Sprintf("Normal Pulling spec.containers{web}: Pulling image %q", public))
	assert.Regexp(t, fmt.Sprintf(`Normal Pulled spec.containers{web}: Successfully pulled image %q in .*s \(.*s including waiting\)\. Image size: [1-9][0-9]* bytes\.`, public), reported)
	assert.Contains(t, reported, "Normal Started")
	registry.Asked()

	reported, err = sync(one("again", public, v1.PullIfNotPresent))
	require.NoError(t, err)
	assert.Contains(t, reported, fmt.Sprintf("Normal Pulled spec.containers{web}: Container image %q already present on machine and can be accessed by the pod", public))
	assert.Empty(t, registry.Asked(), "the image is present")

	reported, err = sync(one("no-secret", private, v1.PullIfNotPresent))
	require.ErrorContains(t, err, "ErrImagePull")
	assert.Contains(t, reported, fmt.Sprintf("Warning Failed spec.containers{web}: Failed to pull image %q: ", private))
	assert.Contains(t, reported, "Warning Failed spec.containers{web}: Error: ErrImagePull")

	reported, err = sync(one("second-works", private, v1.PullIfNotPresent, "eve", "gone", "ann"))
	require.NoError(t, err)
	assert.Contains(t, reported, "Warning FailedToRetrieveImagePullSecret : Unable to retrieve some image pull secrets (gone)")
	asked := strings.Join(registry.Asked(), "\n")
	assert.Contains(t, asked, "eve team/tool:1 401") // img-14
	assert.Contains(t, asked, "ann team/tool:1 200")
	assert.Less(t, strings.Index(asked, "eve"), strings.Index(asked, "ann"))

	// It is present now, but not accessible without the secret (img-5).
	_, err = sync(one("wrong", private, v1.PullIfNotPresent, "eve"))
	require.ErrorContains(t, err, "ErrImagePull")
	assert.Contains(t, strings.Join(registry.Asked(), "\n"), "eve team/tool:1 401")
	_, err = sync(one("wrong", private, v1.PullNever, "eve"))
	require.ErrorContains(t, err, "ErrImageNeverPull")
	_, err = sync(one("second-works", private, v1.PullNever, "ann"))
	require.NoError(t, err)
	assert.Empty(t, registry.Asked())

	// An image that was not pulled by the engine is accessible to every pod.
	_, err = sync(one("preloaded", lab.Busybox, v1.PullNever))
	require.NoError(t, err)

	reported, err = sync(one("missing", registry.Host+"/absent:1", v1.PullIfNotPresent))
	require.ErrorContains(t, err, "ErrImagePull")
	assert.Contains(t, reported, "not found")
	_, err = sync(one("never", registry.Host+"/absent:1", v1.PullNever))
	require.ErrorContains(t, err, "ErrImageNeverPull")
	_, err = sync(one("no-name", "http://x", v1.PullIfNotPresent))
	require.ErrorContains(t, err, "InvalidImageName")

	pulled, err := os.ReadDir(filepath.Join(dir, "root", "image_manager", "pulled"))
	require.NoError(t, err)
	for _, entry := range pulled {
		t.Logf("%s", readFile(t, filepath.Join(dir, "root", "image_manager", "pulled", entry.Name())))
	}
	pulling, err := os.ReadDir(filepath.Join(dir, "root", "image_manager", "pulling"))
	require.NoError(t, err)
	assert.Empty(t, pulling)
}

// A pull that does not end does not delay a deletion.
func TestIntegrationADeletionEndsAPull(t *testing.T) {
	rt, registry, client, _, _ := pulls(t)
	image := registry.PushBusybox("slow:1")
	registry.Hold()
	pod := one("slow", image, v1.PullIfNotPresent)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
		done <- err
	}()
	require.Eventually(t, func() bool { return len(registry.Asked()) > 0 }, time.Minute, 20*time.Millisecond)
	wait(t, 200*time.Millisecond)
	cancel()
	begun := time.Now()
	require.ErrorIs(t, <-done, context.Canceled)
	assert.Less(t, time.Since(begun), 30*time.Second)
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
	there, err := client.Images.ImageStatus(t.Context(), &runtimeapi.ImageSpec{Image: image}, false)
	require.NoError(t, err)
	assert.Nil(t, there.GetImage(), "containerd canceled the pull")

	registry.Release()
	pod = one("quick", image, v1.PullIfNotPresent)
	_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
	require.NoError(t, err)
}

// Pods that pull one image concurrently share one pull.
func TestIntegrationPodsShareAPull(t *testing.T) {
	_, registry, client, _, dir := pulls(t)
	image := registry.PushBusybox("shared:1")
	registry.Hold()
	ended := make(chan images.PullInfo, 10)
	m, err := images.New(images.Config{Service: client.Images, Dir: dir + "/records", MaxParallel: images.Unlimited,
		Hooks: images.Hooks{Pulled: func(i images.PullInfo) { ended <- i }}})
	require.NoError(t, err)
	var reqs []images.Request
	for i := range 5 {
		reqs = append(reqs, images.Request{Pod: one(fmt.Sprint(i), image, ""), Image: image})
	}
	time.AfterFunc(time.Second, registry.Release)
	results := m.EnsureAll(t.Context(), reqs)
	for _, r := range results {
		require.NoError(t, r.Err)
		assert.Equal(t, results[0].Image.ID, r.Image.ID)
	}
	require.Len(t, ended, 1)
	info := <-ended
	assert.NoError(t, info.Err)
	assert.Equal(t, results[0].Image.Size, info.Size)

	// An image of a volume is pulled like any other (img-16).
	pod := one("volumes", image, "")
	pod.Spec.Volumes = []v1.Volume{
		{Name: "tools", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: image, PullPolicy: v1.PullNever}}},
		{Name: "absent", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: registry.Host + "/absent:1"}}},
	}
	volumes := m.EnsureVolumes(t.Context(), images.Request{Pod: pod})
	require.NoError(t, volumes["tools"].Err)
	assert.Equal(t, results[0].Image.ID, volumes["tools"].Image.Spec.Image)
	assert.ErrorContains(t, volumes["absent"].Err, "not found")
}
