package kubelet

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/device/devicetest"
	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/cm/topology"
)

const pinned = `apiVersion: v1
kind: Pod
metadata: {name: pinned}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: kubeparts.test/busybox:1
    command: [sh, -c, "ls -l /dev/widget; echo WIDGET=$WIDGET; while true; do grep Cpus_allowed_list /proc/self/status; sleep 1; done"]
    resources: {limits: {cpu: 1, memory: 32Mi, example.com/widget: 1}}
`

const shared = `apiVersion: v1
kind: Pod
metadata: {name: shared}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: kubeparts.test/busybox:1
    command: [sh, -c, "while true; do grep Cpus_allowed_list /proc/self/status; sleep 1; done"]
`

// printed returns the lines that a pod's container has printed.
func (w *world) printed(pod string) []string {
	w.t.Helper()
	p := w.pods()[pod]
	if len(p.Status.ContainerStatuses) == 0 {
		return nil
	}
	path := w.logFile(p, "main", p.Status.ContainerStatuses[0].RestartCount)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	var printed []string
	for _, l := range w.readLog(path) {
		printed = append(printed, l.text)
	}
	return printed
}

func (w *world) lastPrinted(pod string) string {
	printed := w.printed(pod)
	if len(printed) == 0 {
		return ""
	}
	return printed[len(printed)-1]
}

// A pod waits for a device whose plugin is late, and has it then, and a CPU of its
// own that others leave at once; it keeps both when the agent is killed, and others
// have them after it.
func TestIntegrationAPodHasExclusiveCPUsAndDevicesOnContainerd(t *testing.T) {
	machine, err := topology.Read(os.DirFS("/"))
	require.NoError(t, err)
	if machine.All().Size() < 2 {
		t.Skip("needs two CPUs")
	}
	w := onContainerd(t)
	a := w.agent
	sockets, err := os.MkdirTemp("", "dp") // the path of a socket is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	reserved := cpuset.New(machine.All().List()[0])
	flags := []string{
		"--cpu-manager-policy=static", "--reserved-cpus=" + reserved.String(), "--topology-manager-policy=best-effort",
		"--device-plugins-dir=" + sockets, "--pod-resources-dir=" + filepath.Join(sockets, "pr"),
	}
	a.start(flags...)
	a.write("shared.yaml", shared)
	a.write("pinned.yaml", pinned)
	a.eventually("the shared pod runs anywhere", func() bool {
		return strings.HasSuffix(w.lastPrinted("shared"), "\t"+machine.All().String())
	})

	// The plugin starts.
	a.eventually("the pod is known", func() bool { _, ok := a.pods()["pinned"]; return ok })
	assert.Equal(t, v1.PodPending, a.pods()["pinned"].Status.Phase)
	plugin := &devicetest.Plugin{Dir: sockets, Resource: "example.com/widget", OnAllocate: func(_ context.Context, ids []string) (*pluginapi.AllocateResponse, error) {
		return &pluginapi.AllocateResponse{ContainerResponses: []*pluginapi.ContainerAllocateResponse{{
			Envs:    map[string]string{"WIDGET": strings.Join(ids, ",")},
			Devices: []*pluginapi.DeviceSpec{{ContainerPath: "/dev/widget", HostPath: "/dev/null", Permissions: "rw"}},
		}}}, nil
	}}
	plugin.Set(devicetest.Device("w0"))
	require.NoError(t, plugin.Start(t.Context()))
	t.Cleanup(plugin.Stop)
	a.eventually("the pod runs", func() bool { return a.pods()["pinned"].Status.Phase == v1.PodRunning })
	rest := machine.All()
	a.eventually("it prints its CPUs", func() bool { return strings.HasPrefix(w.lastPrinted("pinned"), "Cpus_allowed_list:") })
	_, list, _ := strings.Cut(w.lastPrinted("pinned"), "\t")
	own, err := topology.ParseCPUs(list)
	require.NoError(t, err)
	assert.Equal(t, 1, own.Size(), list)
	assert.True(t, own.Intersection(reserved).IsEmpty(), list)
	printed := strings.Join(w.printed("pinned"), "\n")
	assert.Contains(t, printed, "WIDGET=w0")
	assert.Regexp(t, `crw.* 1, +3 .* /dev/widget`, printed, "it is the null device")
	rest = rest.Difference(own)
	a.eventually("the shared pod leaves that CPU", func() bool { return strings.HasSuffix(w.lastPrinted("shared"), "\t"+rest.String()) })

	// Its limit is no quota: that would throttle it on its own CPU.
	tree, err := host.New(host.Config{})
	require.NoError(t, err)
	root, err := cgroups.ParseRoot(a.cgroupRoot())
	require.NoError(t, err)
	group := root.Child("kubepods", "pod"+string(a.pods()["pinned"].UID))
	for _, name := range []cgroups.Name{group, group.Child(bareID(a.pods()["pinned"].Status.ContainerStatuses[0].ContainerID))} {
		has, err := tree.Read(name)
		require.NoError(t, err)
		assert.EqualValues(t, cgroups.Unlimited, *has.CPUQuota, name)
	}

	// The pod resources API reports it.
	conn, err := grpc.NewClient("unix:"+filepath.Join(sockets, "pr", "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	answer, err := podresourcesapi.NewPodResourcesListerClient(conn).List(t.Context(), &podresourcesapi.ListPodResourcesRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	reported := map[string]*podresourcesapi.ContainerResources{}
	for _, p := range answer.PodResources {
		reported[strings.TrimSuffix(p.Name, "-node")] = p.Containers[0]
	}
	require.Contains(t, reported, "pinned")
	assert.EqualValues(t, own.List()[0], reported["pinned"].CpuIds[0])
	assert.Equal(t, []string{"w0"}, reported["pinned"].Devices[0].DeviceIds)
	assert.Empty(t, reported["shared"].CpuIds)

	// The agent is killed, and the next one adopts the pod: with the checkpoints, and
	// without.
	id := a.pods()["pinned"].Status.ContainerStatuses[0].ContainerID
	for _, broken := range []bool{false, true} {
		a.kill()
		if broken {
			for _, name := range []string{filepath.Join(a.dir, "root", cpu.StateFile), filepath.Join(a.dir, "root", memory.StateFile), filepath.Join(sockets, "kubelet_internal_checkpoint")} {
				require.NoError(t, os.WriteFile(name, []byte(`{"policyName":`), 0o600))
			}
		}
		socket := filepath.Join(sockets, "kubelet.sock")
		require.NoError(t, os.Remove(socket))
		a.start(flags...)
		a.eventually("the socket is another", func() bool { _, err := os.Stat(socket); return err == nil })
		require.NoError(t, plugin.Start(t.Context())) // as plugins do then
		a.eventually("the pod is taken over", func() bool {
			p := a.pods()["pinned"]
			return p.Status.Phase == v1.PodRunning && p.Status.ContainerStatuses[0].ContainerID == id
		})
		assert.Len(t, plugin.Allocated(), 1)
		var state struct{ Entries map[string]map[string]string }
		data, err := os.ReadFile(filepath.Join(a.dir, "root", cpu.StateFile))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &state))
		assert.Equal(t, own.String(), state.Entries[string(a.pods()["pinned"].UID)]["main"])
	}

	// It terminates, and another pod gets its CPU and device.
	a.remove("pinned.yaml")
	a.eventually("the shared pod has all CPUs", func() bool {
		return strings.HasSuffix(w.lastPrinted("shared"), "\t"+machine.All().String())
	})
	a.eventually("the pod is gone", func() bool { return strings.Contains(a.out.String(), "deleted") })

	// The plugin stops and returns while the agent runs: pods added meanwhile wait for
	// it (dev-5).
	plugin.Stop()
	a.write("next.yaml", strings.ReplaceAll(pinned, "name: pinned", "name: next"))
	a.eventually("the next pod waits", func() bool { return a.pods()["next"].Status.Phase == v1.PodPending })
	require.NoError(t, plugin.Start(t.Context()))
	a.eventually("the next pod runs", func() bool { return a.pods()["next"].Status.Phase == v1.PodRunning })
	a.eventually("it prints its CPUs", func() bool { return strings.HasPrefix(w.lastPrinted("next"), "Cpus_allowed_list:") })

	// Without the policy it runs where it likes, as the same container.
	id = a.pods()["next"].Status.ContainerStatuses[0].ContainerID
	a.kill()
	a.start(flags[3:]...)
	a.eventually("the pod has all CPUs", func() bool {
		return strings.HasSuffix(w.lastPrinted("next"), "\t"+machine.All().String())
	})
	a.eventually("it is the same container", func() bool {
		p := a.pods()["next"]
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].ContainerID == id
	})
}
