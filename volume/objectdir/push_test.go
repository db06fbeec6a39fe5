package objectdir_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/configmap"
	"github.com/kubeparts/kubeparts/volume/objectdir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// A change of the source reaches the volume without a sync of the pod. The delay is
// logged; on an idle machine it is little more than the settling time of 100 ms. A pod
// that waits for an object gets its volume when the object is created.
func TestAChangeIsPushedIntoTheVolume(t *testing.T) {
	dir, root, mounter := t.TempDir(), t.TempDir(), new(volumetest.Mounter)
	var manager *volume.Manager
	objects := open(t, objectdir.Config{Dir: dir, Period: time.Hour, Changed: func(kind, namespace, name string) {
		manager.ObjectChanged(kind, namespace, name)
	}})
	plugin, err := configmap.New(configmap.Config{Objects: objects, Mounter: mounter})
	require.NoError(t, err)
	manager, err = volume.New(volume.Config{RootDir: root, Plugins: []volume.Plugin{plugin}, Mounter: mounter, StatsPeriod: -1})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, manager.Run(ctx)) })
	wg.Go(func() { assert.NoError(t, objects.Run(ctx)) })
	defer wg.Wait()
	defer cancel()

	pod := new(v1.Pod)
	pod.Name, pod.Namespace, pod.UID = "web", "default", "u1"
	pod.Spec.Volumes = []v1.Volume{{Name: "config", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "web"}}}}}
	pod.Spec.Containers = []v1.Container{{Name: "c", VolumeMounts: []v1.VolumeMount{{Name: "config", MountPath: "/config"}}}}
	manifest := func(greeting string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: " + greeting + "}\n"
	}
	mounted := make(chan string, 1)
	wg.Go(func() {
		for ctx.Err() == nil {
			if volumes, err := manager.Mount(ctx, pod); err == nil {
				mounted <- volumes["config"].Path
				return
			}
		}
	})
	time.Sleep(10 * time.Millisecond) // it waits, or will: both are right
	put(t, manifest("hello"), dir, "web.yaml")
	var path string
	select {
	case path = <-mounted:
	case <-time.After(time.Minute):
		t.Fatal("the volume that waited was never mounted")
	}
	seen := func(want string) time.Duration {
		begin := time.Now()
		require.Eventually(t, func() bool {
			data, _ := os.ReadFile(filepath.Join(path, "greeting"))
			return strings.TrimSpace(string(data)) == want
		}, time.Minute, time.Millisecond, want)
		return time.Since(begin)
	}
	seen("hello")
	put(t, manifest("bye"), dir, "web.yaml")
	t.Logf("an update was seen after %v", seen("bye"))
}
