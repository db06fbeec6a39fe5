package managers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/device/devicetest"
	"github.com/kubeparts/kubeparts/cm/managers"
	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
)

// joined creates all managers for a machine, with a plugin of two widgets, one on each
// node.
func joined(t *testing.T, policy topology.Policy) (*managers.Managers, *cpu.Manager) {
	t.Helper()
	dir, err := os.MkdirTemp("", "dp")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	machine := topologytest.Machine(t, "xeon-2s")
	c, err := cpu.Open(cpu.Config{Machine: machine, Policy: cpu.Static, ReservedMilli: 1000})
	require.NoError(t, err)
	m, err := memory.Open(memory.Config{
		Machine: machine, Policy: memory.Static, Reserved: map[int]memory.Request{0: {v1.ResourceMemory: 1 << 30}}, Total: memory.Request{v1.ResourceMemory: 1 << 30},
	})
	require.NoError(t, err)
	d, err := device.Open(device.Config{Dir: dir, Nodes: machine.AllNodes()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-done) })
	plugin := &devicetest.Plugin{Dir: dir, Resource: "example.com/widget", OnAllocate: func(_ context.Context, ids []string) (*pluginapi.AllocateResponse, error) {
		return &pluginapi.AllocateResponse{ContainerResponses: []*pluginapi.ContainerAllocateResponse{{
			Envs:        map[string]string{"WIDGET": fmt.Sprint(ids), "MINE": "plugin's"},
			Annotations: map[string]string{"widget": "yes"},
			Mounts:      []*pluginapi.Mount{{ContainerPath: "/widget", HostPath: "/lib/widget", ReadOnly: true}, {ContainerPath: "/data", HostPath: "/lib/other"}},
			Devices:     []*pluginapi.DeviceSpec{{ContainerPath: "/dev/widget", HostPath: "/dev/null", Permissions: "rw"}},
			CdiDevices:  []*pluginapi.CDIDevice{{Name: "example.com/widget=w"}},
		}}}, nil
	}}
	plugin.Set(devicetest.Device("w0", 0), devicetest.Device("w1", 1))
	require.Eventually(t, func() bool { _, err := os.Stat(dir + "/kubelet.sock"); return err == nil }, 90*time.Second, time.Millisecond)
	require.NoError(t, plugin.Start(t.Context()))
	t.Cleanup(plugin.Stop)
	require.Eventually(t, func() bool { return len(d.All()["example.com/widget"]) == 2 }, 90*time.Second, time.Millisecond)
	joint, err := topology.NewManager(topology.Config{Machine: machine, Policy: policy, Providers: managers.Providers(d, c, m)})
	require.NoError(t, err)
	all, err := managers.New(managers.Config{Topology: joint, CPU: c, Memory: m, Device: d, Active: func(uid types.UID) bool { return uid != "finished" }})
	require.NoError(t, err)
	return all, c
}

func pod(uid, cpus string, widgets int64) *v1.Pod {
	p := &v1.Pod{}
	p.UID, p.Name = types.UID(uid), uid
	p.Spec.Containers = []v1.Container{{Name: "c"}}
	limits := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpus), v1.ResourceMemory: resource.MustParse("1Gi")}
	if widgets > 0 {
		limits["example.com/widget"] = *resource.NewQuantity(widgets, resource.DecimalSI)
	}
	p.Spec.Containers[0].Resources = v1.ResourceRequirements{Limits: limits, Requests: limits}
	return p
}

// CPUs, memory and the device of a container are of one node, and all are in the
// options that it is created with.
func TestAContainerIsCreatedWithItsAllocatedResources(t *testing.T) {
	m, _ := joined(t, topology.SingleNUMANode)
	require.Nil(t, m.Admit(t.Context(), pod("a", "2", 1)))
	b := pod("b", "2", 1)
	require.Nil(t, m.Admit(t.Context(), b))
	config := &runtimeapi.ContainerConfig{
		Envs:   []*runtimeapi.KeyValue{{Key: "MINE", Value: []byte("pod's")}},
		Mounts: []*runtimeapi.Mount{{ContainerPath: "/data", HostPath: "/of/pod"}},
	}
	require.NoError(t, m.PreparePod(t.Context(), b))
	require.NoError(t, m.PreCreate(t.Context(), b, &b.Spec.Containers[0], config))
	require.NoError(t, m.PreStart(t.Context(), b, &b.Spec.Containers[0], "id"))
	require.NoError(t, m.PostStop(t.Context(), "id"))
	assert.Equal(t, "1,21", config.Linux.Resources.CpusetCpus)
	assert.Equal(t, "1", config.Linux.Resources.CpusetMems)
	env := map[string]string{}
	for _, e := range config.Envs {
		env[e.Key] = string(e.Value)
	}
	assert.Equal(t, map[string]string{"MINE": "pod's", "WIDGET": "[w1]"}, env)
	require.Len(t, config.Mounts, 2)
	assert.Equal(t, "/of/pod", config.Mounts[0].HostPath)
	assert.True(t, config.Mounts[1].Readonly)
	assert.Equal(t, "/dev/null", config.Devices[0].HostPath)
	assert.Equal(t, "example.com/widget=w", config.CDIDevices[0].Name)
	assert.Equal(t, "yes", config.Annotations["widget"])
	assert.Equal(t, &device.Adopted{PodUID: "b", Container: "c", Devices: map[string][]string{"example.com/widget": {"w1"}}}, managers.Adopted("b", "c", config.Annotations))
	assert.Nil(t, managers.Adopted("b", "c", nil))
	assert.Nil(t, managers.Adopted("b", "c", map[string]string{managers.AnnotationDevices: "{"}))
}

// claims are those of a pod.
type claims struct{ names []string }

func (c *claims) PrepareResources(_ context.Context, pod *v1.Pod) error {
	return fmt.Errorf("prepare %s", pod.Name)
}

func (c *claims) CDIDevices(context.Context, *v1.Pod, *v1.Container) ([]string, error) {
	if c.names == nil {
		return nil, errors.New("not prepared")
	}
	return c.names, nil
}

// dra-1
func TestAContainerIsCreatedWithTheDevicesOfItsClaims(t *testing.T) {
	machine, err := topology.NewMachine([]topology.CPU{{ID: 0}}, []topology.Node{{ID: 0}}, cpuset.New())
	require.NoError(t, err)
	joint, err := topology.NewManager(topology.Config{Machine: machine})
	require.NoError(t, err)
	c := &claims{}
	m, err := managers.New(managers.Config{Topology: joint, Claims: c})
	require.NoError(t, err)
	p := pod("a", "1", 0)
	p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu"}}
	require.Nil(t, m.Admit(t.Context(), p))
	require.EqualError(t, m.PreparePod(t.Context(), p), "prepare a")
	config := &runtimeapi.ContainerConfig{CDIDevices: []*runtimeapi.CDIDevice{{Name: "v/c=1"}}}
	require.EqualError(t, m.PreCreate(t.Context(), p, &p.Spec.Containers[0], config), "not prepared")
	c.names = []string{"v/c=1", "v/c=2"}
	require.NoError(t, m.PreCreate(t.Context(), p, &p.Spec.Containers[0], config))
	require.Len(t, config.CDIDevices, 2, "each once")
	assert.Equal(t, "v/c=2", config.CDIDevices[1].Name)
}

// top-4, top-5, dev-9: the reasons of rejections.
func TestRejections(t *testing.T) {
	m, c := joined(t, topology.SingleNUMANode)
	r := m.Admit(t.Context(), pod("a", "2", 2))
	require.NotNil(t, r)
	assert.Equal(t, "TopologyAffinityError: Resources cannot be allocated with Topology locality", r.Reason+": "+r.Message)
	late := pod("b", "2", 0)
	late.Spec.Containers[0].Resources.Limits["example.com/late"] = resource.MustParse("1")
	r = m.Admit(t.Context(), late)
	require.NotNil(t, r)
	assert.True(t, r.Deferred)
	claim := pod("c", "2", 0)
	claim.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu"}}
	r = m.Admit(t.Context(), claim)
	require.NotNil(t, r)
	assert.False(t, r.Deferred)
	assert.Equal(t, "resource claims (dynamic resource allocation) are not supported", r.Message)
	require.ErrorContains(t, m.PreparePod(t.Context(), claim), "are not supported")
	for _, uid := range []types.UID{"a", "b", "c"} {
		assert.False(t, c.Holds(uid), uid)
	}
	require.Nil(t, m.Admit(t.Context(), pod("d", "2", 1)))
	assert.True(t, c.Holds("d"))
	_ = m.Retain(t.Context(), func(types.UID) bool { return false })
	assert.False(t, c.Holds("d"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r = m.Admit(ended, pod("e", "2", 1))
	if r != nil {
		assert.True(t, r.Deferred, "a canceled call is no rejection")
	}
	_, err := managers.New(managers.Config{})
	require.EqualError(t, err, "managers: Config.Topology is nil")
}

func TestAdmitReleasesTheResourcesOfOtherPods(t *testing.T) { // cpu-9, dev-12
	m, c := joined(t, topology.None)
	require.Nil(t, m.Admit(t.Context(), pod("finished", "2", 1)))
	require.True(t, c.Holds("finished"))
	require.Nil(t, m.Admit(t.Context(), pod("next", "2", 2)), "both widgets are free")
	assert.False(t, c.Holds("finished"))
}

func TestWhichContainersHaveExclusiveCPUs(t *testing.T) {
	m, _ := joined(t, topology.None)
	p := pod("p", "2", 0)
	p.Spec.Containers = append(p.Spec.Containers, *p.Spec.Containers[0].DeepCopy())
	p.Spec.Containers[1].Name = "shares"
	some := v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m"), v1.ResourceMemory: resource.MustParse("1Gi")}
	p.Spec.Containers[1].Resources = v1.ResourceRequirements{Limits: some, Requests: some}
	p.Spec.InitContainers = []v1.Container{*p.Spec.Containers[0].DeepCopy()}
	p.Spec.InitContainers[0].Name = "init"
	assert.Empty(t, m.ExclusiveCPUs(p), "before admission")
	require.Nil(t, m.Admit(t.Context(), p))
	assert.Equal(t, []string{"init", "c"}, m.ExclusiveCPUs(p))
	none, err := managers.New(managers.Config{Topology: new(topology.Manager)})
	require.NoError(t, err)
	assert.Empty(t, none.ExclusiveCPUs(p))
}

func ExampleProviders() {
	fmt.Println(len(managers.Providers(nil, nil, nil)))
	// Output: 0
}
