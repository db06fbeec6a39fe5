package fakecri_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// busy uses half a core, and memory that grows by 100 bytes per second for ten
// seconds.
var busy = fake.Behavior{
	CPU:    level(0.5),
	Memory: fake.Curve{Points: []fake.Point{{Value: 0}, {At: 10 * time.Second, Value: 1000}}},
	Disk:   level(5000),
}

func TestUsageFollowsTheCurves(t *testing.T) {
	on(t, does(busy), func(n *node) {
		id, _ := n.started()
		time.Sleep(4 * time.Second)
		st, err := n.ContainerStats(n.ctx, id)
		require.NoError(n, err)
		assert.Equal(n, id, st.Attributes.Id)
		assert.Equal(n, "web", st.Attributes.Metadata.Name)
		assert.Equal(n, "a", st.Attributes.Labels["io.kubernetes.pod.uid"])
		now := time.Now().UnixNano()
		assert.Equal(n, now, st.Cpu.Timestamp)
		assert.EqualValues(n, 2*time.Second, st.Cpu.UsageCoreNanoSeconds.Value)
		assert.EqualValues(n, 5e8, st.Cpu.UsageNanoCores.Value)
		assert.Equal(n, now, st.Memory.Timestamp)
		for _, v := range []*runtimeapi.UInt64Value{st.Memory.WorkingSetBytes, st.Memory.UsageBytes, st.Memory.RssBytes} {
			assert.EqualValues(n, 400, v.Value)
		}
		assert.EqualValues(n, 1<<20-400, st.Memory.AvailableBytes.Value, "relative to its limit")
		assert.EqualValues(n, 5000, st.WritableLayer.UsedBytes.Value)
		assert.EqualValues(n, 1, st.WritableLayer.InodesUsed.Value)
		assert.Nil(n, st.Cpu.Psi)
		assert.Nil(n, st.Memory.Psi)
		assert.Nil(n, st.Io)
		assert.Nil(n, st.Swap)

		require.NoError(n, n.UpdateContainerResources(n.ctx, id, &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 300}}))
		st, err = n.ContainerStats(n.ctx, id)
		require.NoError(n, err)
		assert.Zero(n, st.Memory.AvailableBytes.Value)
	})
}

func TestAContainerThatDoesNotRunUsesDiskOnly(t *testing.T) {
	on(t, does(busy), func(n *node) {
		sandbox := n.sandbox("a")
		id := n.created(sandbox, "a", "web", 0)
		stats := func() *runtimeapi.ContainerStats {
			_, err := n.ContainerStats(n.ctx, id)
			hasCode(n, codes.Unknown, err)
			list, err := n.ListContainerStats(n.ctx, nil)
			require.NoError(n, err)
			require.Len(n, list, 1)
			assert.Nil(n, list[0].Cpu)
			assert.Nil(n, list[0].Memory)
			return list[0]
		}
		assert.Zero(n, stats().WritableLayer.UsedBytes.Value)
		require.NoError(n, n.StartContainer(n.ctx, id))
		time.Sleep(time.Second)
		require.NoError(n, n.StopContainer(n.ctx, id, 0))
		assert.EqualValues(n, 5000, stats().WritableLayer.UsedBytes.Value)
		require.NoError(n, n.RemoveContainer(n.ctx, id))
		_, err := n.ContainerStats(n.ctx, id)
		hasCode(n, codes.NotFound, err)
		_, err = n.ContainerStats(n.ctx, "")
		hasCode(n, codes.Unknown, err)
	})
}

func TestAPodsUsageIsTheSumOfItsContainers(t *testing.T) {
	on(t, does(busy), func(n *node) {
		id, sandbox := n.started()
		other := n.created(sandbox, "a", "idle", 0)
		require.NoError(n, n.StartContainer(n.ctx, other))
		pod := func() *runtimeapi.LinuxPodSandboxStats {
			st, err := n.PodSandboxStats(n.ctx, sandbox)
			require.NoError(n, err)
			assert.Equal(n, sandbox, st.Attributes.Id)
			assert.Equal(n, "pod-a", st.Attributes.Metadata.Name)
			return st.Linux
		}
		time.Sleep(4 * time.Second)
		st := pod()
		assert.EqualValues(n, 2*time.Second, st.Cpu.UsageCoreNanoSeconds.Value)
		assert.EqualValues(n, 5e8, st.Cpu.UsageNanoCores.Value)
		assert.EqualValues(n, 400, st.Memory.WorkingSetBytes.Value)
		assert.EqualValues(n, 2, st.Process.ProcessCount.Value)
		assert.Len(n, st.Containers, 2)
		assert.Equal(n, "eth0", st.Network.DefaultInterface.Name)
		assert.Nil(n, st.Io)

		// The usage of the next instance starts at 0, that of the pod continues.
		require.NoError(n, n.StopContainer(n.ctx, id, 0))
		require.NoError(n, n.RemoveContainer(n.ctx, id))
		assert.EqualValues(n, 2*time.Second, pod().Cpu.UsageCoreNanoSeconds.Value)
		id = n.created(sandbox, "a", "web", 1)
		require.NoError(n, n.StartContainer(n.ctx, id))
		time.Sleep(2 * time.Second)
		st = pod()
		assert.EqualValues(n, 3*time.Second, st.Cpu.UsageCoreNanoSeconds.Value)
		assert.EqualValues(n, 200, st.Memory.WorkingSetBytes.Value)

		require.NoError(n, n.StopPodSandbox(n.ctx, sandbox))
		_, err := n.PodSandboxStats(n.ctx, sandbox)
		hasCode(n, codes.Unavailable, err)
		list, err := n.ListPodSandboxStats(n.ctx, nil)
		require.NoError(n, err)
		assert.Empty(n, list)
		_, err = n.PodSandboxStats(n.ctx, "absent")
		hasCode(n, codes.NotFound, err)
	})
}

func TestAPodOnTheHostsNetworkHasNoTraffic(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		cfg := podConfig("a")
		cfg.Linux = &runtimeapi.LinuxPodSandboxConfig{
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}},
			Resources:       &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 1000},
		}
		id, err := n.RunPodSandbox(n.ctx, cfg, "")
		require.NoError(n, err)
		st, err := n.PodSandboxStats(n.ctx, id)
		require.NoError(n, err)
		assert.Nil(n, st.Linux.Network)
		assert.EqualValues(n, 1000, st.Linux.Memory.AvailableBytes.Value)
	})
}

func TestStatsAreFilteredAsListsAre(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		a, b := n.sandbox("a"), n.sandbox("b")
		web, job, other := n.created(a, "a", "web", 0), n.created(a, "a", "job", 0), n.created(b, "b", "web", 0)
		for _, test := range []struct {
			filter *runtimeapi.ContainerStatsFilter
			want   []string
		}{
			{nil, []string{web, job, other}},
			{&runtimeapi.ContainerStatsFilter{}, []string{web, job, other}},
			{&runtimeapi.ContainerStatsFilter{Id: job}, []string{job}},
			{&runtimeapi.ContainerStatsFilter{Id: job[:12]}, []string{job}},
			{&runtimeapi.ContainerStatsFilter{Id: "absent"}, nil},
			{&runtimeapi.ContainerStatsFilter{PodSandboxId: a}, []string{web, job}},
			{&runtimeapi.ContainerStatsFilter{PodSandboxId: a, Id: other}, nil},
			{&runtimeapi.ContainerStatsFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": "b"}}, []string{other}},
			{&runtimeapi.ContainerStatsFilter{PodSandboxId: a, LabelSelector: map[string]string{"io.kubernetes.container.name": "web"}}, []string{web}},
		} {
			list, err := n.ListContainerStats(n.ctx, test.filter)
			require.NoError(n, err)
			var ids []string
			for _, st := range list {
				ids = append(ids, st.Attributes.Id)
			}
			assert.Equal(n, test.want, ids, "%v", test.filter)
		}
		for _, test := range []struct {
			filter *runtimeapi.PodSandboxStatsFilter
			want   []string
		}{
			{nil, []string{a, b}},
			{&runtimeapi.PodSandboxStatsFilter{Id: b[:12]}, []string{b}},
			{&runtimeapi.PodSandboxStatsFilter{Id: "absent"}, nil},
			{&runtimeapi.PodSandboxStatsFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": "a", "app": "shop"}}, []string{a}},
			{&runtimeapi.PodSandboxStatsFilter{LabelSelector: map[string]string{"app": "other"}}, nil},
		} {
			list, err := n.ListPodSandboxStats(n.ctx, test.filter)
			require.NoError(n, err)
			var ids []string
			for _, st := range list {
				ids = append(ids, st.Attributes.Id)
			}
			assert.Equal(n, test.want, ids, "%v", test.filter)
		}
	})
}

func TestUsedTimeDoesNotFallWhateverTheCurve(t *testing.T) {
	sawtooth := fake.Curve{Repeat: true, Points: []fake.Point{{Value: 3}, {At: 7 * time.Millisecond, Value: 0}, {At: 9 * time.Millisecond, Value: 1.0 / 3}}}
	on(t, does(fake.Behavior{CPU: sawtooth}), func(n *node) {
		id, sandbox := n.started()
		var last, lastOfPod uint64
		for range 1000 {
			time.Sleep(1234567)
			st, err := n.ContainerStats(n.ctx, id)
			require.NoError(n, err)
			pod, err := n.PodSandboxStats(n.ctx, sandbox)
			require.NoError(n, err)
			used, ofPod := st.Cpu.UsageCoreNanoSeconds.Value, pod.Linux.Cpu.UsageCoreNanoSeconds.Value
			require.GreaterOrEqual(n, used, last)
			require.GreaterOrEqual(n, ofPod, lastOfPod)
			last, lastOfPod = used, ofPod
		}
	})
}

func level(v float64) fake.Curve { return fake.Curve{Points: []fake.Point{{Value: v}}} }
