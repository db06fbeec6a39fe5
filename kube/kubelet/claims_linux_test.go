package kubelet_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"

	"github.com/kubeparts/kubeparts/cm/dra/dratest"
	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/volume"
)

// injecting is a runtime that records the CDI devices of containers.
type injecting struct {
	*fakecri.Runtime

	mu    sync.Mutex // guards the field below
	names []string
}

func (i *injecting) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, s *runtimeapi.PodSandboxConfig) (string, error) {
	i.mu.Lock()
	for _, d := range config.CDIDevices {
		i.names = append(i.names, d.Name)
	}
	i.mu.Unlock()
	return i.Runtime.CreateContainer(ctx, sandbox, config, s)
}

func (i *injecting) injected() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]string(nil), i.names...)
}

// dra-1, dra-2, dra-3, dra-4, dra-12
func TestPodsHaveTheirResourceClaims(t *testing.T) {
	if !volume.CanMount() {
		t.Skip("plugins of drivers register only where volumes can be mounted")
	}
	const driverName = "test.example.com"
	api := new(apitest.Server)
	node := "n"
	api.Put(&resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "stale"}, Spec: resourceapi.ResourceSliceSpec{NodeName: &node, Driver: driverName},
	})
	m := newMember(t, api, node)
	rt := &injecting{Runtime: m.runtime}
	dir, err := os.MkdirTemp("", "dra") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m.cfg.RootDir = dir
	m.cfg.Runtime.Service, m.cfg.Runtime.Processes = rt, false
	m.cfg.Configuration.CgroupsPerQOS, m.cfg.Configuration.EnforceNodeAllocatable = new(false), []string{"none"}
	m.cfg.Configuration.PodLogsDir = filepath.Join(dir, "logs")
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }) // the mount of volume.Share
	m.start(t)
	require.Eventually(t, func() bool { return nodeReady(api, node) }, 90*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool { return api.Get("resourceslices", "", "stale") == nil }, 90*time.Second, 10*time.Millisecond)

	pod := bound("web", node)
	pod.UID = "pod-1"
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("claim")}}
	pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpu"}}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim", UID: "claim-1"}}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "r", Driver: driverName, Pool: "pool", Device: "dev"}},
	}}
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "web", UID: pod.UID}}
	api.Put(claim)
	api.Put(pod)
	time.Sleep(200 * time.Millisecond) // the pod waits for its driver
	assert.Empty(t, m.runtime.Sandboxes(""))

	driver := &dratest.Driver{Name: driverName, Dir: dir, RegistryDir: filepath.Join(dir, "plugins_registry")}
	driver.SetHealth(&healthv1.DeviceHealth{
		Device: &healthv1.DeviceIdentifier{PoolName: "pool", DeviceName: "device-claim"}, Health: healthv1.HealthStatus_UNHEALTHY, HealthCheckTimeoutSeconds: 600,
	})
	require.NoError(t, driver.Start())
	t.Cleanup(driver.Stop)
	running := func() *v1.Pod {
		if p := api.Pod("default", "web"); p != nil && p.Status.Phase == v1.PodRunning {
			return p
		}
		return nil
	}
	require.Eventually(t, func() bool { return running() != nil }, 90*time.Second, 10*time.Millisecond)
	assert.Equal(t, []string{driverName + "/claim=claim-1"}, rt.injected())
	assert.Equal(t, []string{"claim-1"}, driver.Prepared())
	require.Eventually(t, func() bool {
		s := running().Status.ContainerStatuses[0].AllocatedResourcesStatus
		return len(s) == 1 && s[0].Name == "claim:gpu" && s[0].Resources[0].ResourceID == driverName+"/pool/device-claim" &&
			s[0].Resources[0].Health == v1.ResourceHealthStatusUnhealthy
	}, 90*time.Second, 10*time.Millisecond)
	assert.FileExists(t, filepath.Join(dir, "dra_manager_state"))

	ended := pod.DeepCopy()
	ended.DeletionTimestamp, ended.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, new(int64(1))
	api.Put(ended)
	require.Eventually(t, func() bool { return len(driver.Prepared()) == 0 }, 90*time.Second, 10*time.Millisecond)
	m.stop()
	require.NoError(t, <-m.stopped)
}
