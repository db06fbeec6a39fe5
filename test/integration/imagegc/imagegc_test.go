package imagegc_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
)

// A containerd whose images have their own small disk, which really fills up: unused
// images are removed until there is space, images of containers stay, and if that is
// not sufficient the error reports it. The node then works again.
func TestIntegrationImagesAreRemovedWhenTheirDiskIsFull(t *testing.T) { // ig-4, ig-13, ig-14, ig-19
	const mib = 1 << 20
	daemon := lab.Containerd(t, lab.ContainerdConfig{RootMiB: 256})
	client, err := remote.Dial(t.Context(), daemon.Endpoint, remote.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close(context.Background())) })
	dir := t.TempDir()
	rt, err := cri.New(cri.Config{
		Name: client.Name, Runtime: client.Runtime, Images: client.Images, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/pods"},
	})
	require.NoError(t, err)

	// Six images of the same base, each with an incompressible layer of 8 MiB.
	registry := lab.NewRegistry(t)
	var names []string
	for i := range 6 {
		data := make([]byte, 8*mib)
		_, _ = rand.Read(data)
		img := lab.Image{Files: []lab.File{{Path: "data", Mode: 0o644, Data: data}}}
		names = append(names, registry.Push(img, fmt.Sprintf("store/data:%d", i)))
	}
	pull := func(name string) {
		t.Helper()
		_, err := client.Images.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: name}, nil, nil)
		require.NoError(t, err)
	}
	for _, name := range names {
		pull(name)
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: types.UID(fmt.Sprintf("ig-%d", time.Now().UnixNano()))},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyNever, HostNetwork: true, TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []v1.Container{{
				Name: "web", Image: lab.Busybox, ImagePullPolicy: v1.PullNever, Command: []string{"sleep", "3600"},
			}},
		},
	}

	space := imagegc.SpaceOf(rt)
	policy := func(high, low int32) imagegc.Policy {
		return imagegc.Policy{HighPercent: &high, LowPercent: &low, MinAge: -1, Keep: []string{lab.Pause}}
	}
	manager := func(p imagegc.Policy) *imagegc.Manager {
		m, err := imagegc.New(imagegc.Config{
			Store: rt, Space: space, Policy: p, Path: filepath.Join(dir, "images.json"),
			Consumers: func(ctx context.Context) ([]imagegc.Consumer, error) {
				return imagegc.DirUsage(ctx, os.DirFS(daemon.Root()), map[string][]string{"a file of the test": {"ballast"}})
			},
		})
		require.NoError(t, err)
		return m
	}
	watch := manager(policy(100, 100))
	release, err := watch.AcquireImages(t.Context(), pod)
	require.NoError(t, err)
	_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
	require.NoError(t, err)
	release()
	t.Cleanup(func() {
		assert.NoError(t, rt.KillPod(context.Background(), runtime.KillRequest{UID: pod.UID, Pod: pod, GracePeriodSeconds: new(int64(0))}))
	})
	runs := func() bool {
		status, err := rt.PodStatus(t.Context(), pod.UID)
		require.NoError(t, err)
		return status.Container("web").State == runtime.ContainerRunning
	}
	has := func(name string) bool {
		images, err := rt.Images(t.Context())
		require.NoError(t, err)
		return slices.ContainsFunc(images, func(i runtime.Image) bool { return slices.Contains(i.Tags, name) })
	}

	plan, err := watch.DryRun(t.Context())
	require.NoError(t, err)
	for _, d := range plan.Decisions {
		t.Log(d, d.Record.Image.Size)
		if slices.Contains(d.Record.Image.Tags, lab.Busybox) {
			assert.Equal(t, imagegc.ClassInUse, d.Class)
		}
	}
	full, err := space(t.Context())
	require.NoError(t, err)
	used := plan.UsagePercent
	t.Logf("%d of %d MiB are available, %d%% used", full.Available/mib, full.Capacity/mib, used)

	// A tenth of the disk is to be freed: two images or three.
	time.Sleep(10 * time.Millisecond) // released images count as used a moment ago
	report, err := manager(policy(int32(used), int32(used-10))).Collect(t.Context())
	require.NoError(t, err)
	now, err := space(t.Context())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, now.Available, report.Plan.Target, "there really is space")
	assert.NotEmpty(t, report.Removed)
	assert.Less(t, len(report.Removed), len(names), "and no more went than had to")
	assert.True(t, runs())
	t.Logf("%d images went, %d MiB were freed", len(report.Removed), report.Freed/mib)

	// Other files fill the disk: all unused images are removed, and the error names
	// the cause.
	ballast := filepath.Join(daemon.Root(), "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, now.Available-4*mib), 0o600))
	_, err = manager(policy(85, 50)).Collect(t.Context())
	assert.ErrorContains(t, err, "Space is used by a file of the test")
	for _, name := range names {
		assert.False(t, has(name))
	}
	assert.True(t, has(lab.Busybox))
	assert.True(t, has(lab.Pause), "kept by the policy")
	assert.True(t, runs())

	require.NoError(t, os.Remove(ballast))
	_, err = manager(policy(85, 80)).Collect(t.Context())
	require.NoError(t, err)
	pull(names[0])
	assert.True(t, has(names[0]), "images can be pulled again")
}
