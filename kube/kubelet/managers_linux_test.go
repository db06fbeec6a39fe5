package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/podwing"
)

// A runtime whose containers are not plain processes has resource managers and images.
func TestResourceManagersAndImages(t *testing.T) {
	cfg := runnable(t, "cgroupsPerQOS: false\nenforceNodeAllocatable: [none]\n")
	cfg.Runtime.Processes = false
	cfg.Configuration.PodLogsDir = filepath.Join(cfg.RootDir, "logs")
	t.Cleanup(func() { _ = syscall.Unmount(cfg.RootDir, syscall.MNT_DETACH) }) // the mount of volume.Share
	manifest := `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: nginx}]}}`
	require.NoError(t, os.WriteFile(filepath.Join(cfg.Configuration.StaticPodPath, "web.yaml"), []byte(manifest), 0o600))
	k, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- k.Run(ctx) }()
	require.Eventually(t, func() bool { return len(k.Agent().Table().Running()) == 1 }, 90*time.Second, 10*time.Millisecond)
	for _, socket := range []string{"device-plugins/kubelet.sock", "pod-resources/kubelet.sock"} {
		assert.Eventually(t, func() bool { return podwing.Exists(filepath.Join(cfg.RootDir, socket)) }, 90*time.Second, 10*time.Millisecond, socket)
	}
	assert.FileExists(t, filepath.Join(cfg.RootDir, "cpu_manager_state"))
	assert.FileExists(t, filepath.Join(cfg.RootDir, "memory_manager_state"))
	cancel()
	require.NoError(t, <-ran)

	cfg.Runtime.Processes = true
	cfg.Configuration.CPUManagerPolicy = "static"
	_, err = Open(t.Context(), cfg)
	assert.EqualError(t, err, "cpuManagerPolicy, memoryManagerPolicy: plain processes cannot have exclusive CPUs or memory")
}
