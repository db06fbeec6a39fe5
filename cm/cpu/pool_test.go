package cpu_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/runtime"
)

// podOf has pod-level resources and containers: "" for one without resources. Names of init containers begin
// with "init", those of sidecars with "side".
func podOf(uid, amount string, containers ...[2]string) *v1.Pod {
	p := &v1.Pod{}
	p.UID, p.Name = types.UID(uid), uid
	p.Spec.Resources = new(container("", amount).Resources)
	for _, one := range containers {
		c := v1.Container{Name: one[0]}
		if one[1] != "" {
			c = container(one[0], one[1])
		}
		switch c.Name[:4] {
		case "side":
			c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
			fallthrough
		case "init":
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		default:
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
	return p
}

// cpu-11: the examples of KEP-5526.
func TestAPoolIsDividedAmongTheContainers(t *testing.T) {
	halves := podOf("p", "4", [2]string{"main", "1500m"}, [2]string{"rest", ""})
	burstable := podOf("p", "4", [2]string{"main", "2"})
	burstable.Spec.Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("1Mi")}
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want map[string]string
		pool string
	}{
		"shared only":      {podOf("p", "4", [2]string{"main", ""}, [2]string{"more", ""}), map[string]string{"main": "shared 1-2,5-6", "more": "shared 1-2,5-6"}, "1-2,5-6"},
		"mixed":            {podOf("p", "4", [2]string{"main", "2"}, [2]string{"rest", ""}, [2]string{"more", ""}), map[string]string{"main": "1,5", "rest": "shared 2,6", "more": "shared 2,6"}, "1-2,5-6"},
		"exclusive only":   {podOf("p", "4", [2]string{"main", "2"}, [2]string{"more", "2"}), map[string]string{"main": "1,5", "more": "2,6"}, "1-2,5-6"},
		"some is not used": {podOf("p", "4", [2]string{"main", "2"}), map[string]string{"main": "1,5"}, "1-2,5-6"},
		"not whole":        {halves, map[string]string{"main": "shared 1-2,5-6", "rest": "shared 1-2,5-6"}, "1-2,5-6"},
		"init containers and sidecars": {
			podOf("p", "6", [2]string{"init-all", ""}, [2]string{"side-own", "1"}, [2]string{"init-own", "4"}, [2]string{"init-rest", ""}, [2]string{"side-rest", ""}, [2]string{"main", "2"}, [2]string{"more", ""}),
			map[string]string{
				"init-all": "shared 1-3,5-7", "side-own": "1", "init-own": "2-3,6-7", "init-rest": "shared 2-3,5-7",
				"side-rest": "shared 3,5,7", "main": "2,6", "more": "shared 3,5,7",
			}, "1-3,5-7",
		},
		"not Guaranteed":          {burstable, map[string]string{"main": "shared 0-7"}, ""},
		"the pod's are not whole": {podOf("p", "4500m", [2]string{"main", "2"}), map[string]string{"main": "shared 0-7"}, ""},
		"as much as the node has": {podOf("p", "7", [2]string{"main", ""}), map[string]string{"main": "shared 1-7"}, "1-7"},
	} {
		t.Run(name, func(t *testing.T) {
			m := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0"), Options: cpu.Options{PodLevel: topology.PodScope}})
			require.NoError(t, allocate(t, m, tc.pod))
			got := map[string]string{}
			for name := range tc.want {
				got[name] = has(m, "p", name)
			}
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.pool, m.PodCPUs("p").String())
			assert.Equal(t, tc.pool != "", m.Concerns(tc.pod))
			assert.Equal(t, "shared "+cpus(t, "0-7").Difference(m.PodCPUs("p")).String(), has(m, "other", "c"))
			assert.Equal(t, tc.pool != "", m.Holds("p"))
			m.Retain(func(types.UID) bool { return false })
			assert.Equal(t, "shared 0-7", has(m, "other", "c"), "all of the pool is free again")
			assert.Empty(t, m.PodCPUs("p").List())
		})
	}
}

func TestPoolsWithoutCPUsForSomeContainersAreRejected(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want string
	}{
		"containers": {podOf("p", "4", [2]string{"main", "3"}, [2]string{"more", "1"}, [2]string{"rest", ""}), "sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers"},
		"a sidecar":  {podOf("p", "4", [2]string{"side-rest", ""}, [2]string{"main", "4"}), "leaving no cpus for shared containers"},
		"init":       {podOf("p", "4", [2]string{"side-own", "4"}, [2]string{"init-rest", ""}), "pod has shared init containers but no cpus available for them"},
	} {
		m := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0"), Options: cpu.Options{PodLevel: topology.PodScope}})
		var refusal *runtime.Rejection
		require.ErrorAs(t, allocate(t, m, tc.pod), &refusal, name)
		assert.Equal(t, "EmptyPodSharedPoolError", refusal.Reason, name)
		assert.Contains(t, refusal.Message, "pod rejected, ", name)
		assert.Contains(t, refusal.Message, tc.want, name)
		assert.False(t, m.Holds("p"), name)
		assert.Equal(t, topology.Hints{"cpu": {}}, m.Hints(tc.pod, nil), "%s: and no nodes suit it", name)
	}
	m := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0"), Options: cpu.Options{PodLevel: topology.PodScope}})
	assert.NoError(t, allocate(t, m, podOf("p", "4", [2]string{"init-rest", ""}, [2]string{"main", "4"})), "the init container has ended by then")
	assert.ErrorIs(t, allocate(t, m, podOf("q", "4", [2]string{"main", ""})), cpu.ErrTooFew)
	m = open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0"), Options: cpu.Options{FullPCPUsOnly: true, PodLevel: topology.PodScope}})
	assert.ErrorContains(t, allocate(t, m, podOf("p", "3", [2]string{"main", ""})), "requested 3 cpus not multiple cpus per core = 2")
}

// With the scope container, pod-level resources only determine that the pod is Guaranteed.
func TestContainersOfAPodWithPodLevelResources(t *testing.T) {
	mixed := podOf("p", "4", [2]string{"main", "2"}, [2]string{"rest", ""})
	unequal := podOf("q", "4", [2]string{"main", "2"})
	unequal.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	m := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0"), Options: cpu.Options{PodLevel: topology.ContainerScope}})
	require.NoError(t, allocate(t, m, mixed))
	require.NoError(t, allocate(t, m, unequal))
	assert.Equal(t, "1,5", has(m, "p", "main"))
	assert.Equal(t, "shared 0,2-4,6-7", has(m, "p", "rest"))
	assert.Equal(t, "shared 0,2-4,6-7", has(m, "q", "main"))
	assert.Empty(t, m.PodCPUs("p").List())
	assert.True(t, m.Concerns(mixed))

	m = open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0")})
	assert.False(t, m.Concerns(mixed), "without the feature gate")
	_, err := cpu.Open(cpu.Config{Machine: topologytest.Machine(t, "desktop-1s"), Options: cpu.Options{PodLevel: "node"}})
	assert.EqualError(t, err, `cpu: Options.PodLevel: unknown scope: "node"`)
}

// A restart keeps the pools, also those of a kubelet, which does not save which containers share one.
func TestPoolsSurviveARestart(t *testing.T) {
	p := podOf("p", "4", [2]string{"main", "2"}, [2]string{"rest", ""})
	store := &state.Memory{}
	var reported []string
	cfg := cpu.Config{Reserved: cpus(t, "0"), Options: cpu.Options{PodLevel: topology.PodScope}, Store: store}
	cfg.Hooks.Pinned = func(i cpu.PinInfo) {
		reported = append(reported, fmt.Sprint(i.Pod.UID, " ", i.Container, " ", i.CPUs, " ", i.Assignment, " ", i.Error))
	}
	m := open(t, "desktop-1s", cfg)
	require.NoError(t, m.Allocate(t.Context(), p, &p.Spec.Containers[0], topology.Any()))
	assert.Equal(t, []string{"p main 1,5 pod_exclusive <nil>", "p rest 2,6 pod_shared <nil>"}, reported)
	saved := store.Record
	require.NoError(t, allocate(t, m, p))
	assert.Equal(t, string(saved), string(store.Record), "the first container gets all")
	assert.Len(t, reported, 2)

	m = open(t, "desktop-1s", cfg)
	assert.Equal(t, "1-2,5-6", m.PodCPUs("p").String())
	assert.Equal(t, "shared 2,6", has(m, "p", "rest"))
	assert.Equal(t, []topology.Hint{{Nodes: 1, Preferred: true}}, m.Hints(p, nil)["cpu"])
	require.NoError(t, allocate(t, m, podOf("q", "3", [2]string{"main", ""})), "and no more")
	assert.Equal(t, "3-4,7", m.PodCPUs("q").String())

	// As kubelet 1.37.2 saves it, with PodLevelResourceManagers.
	store.Record = []byte(kubeletPools)
	m = open(t, "desktop-1s", cfg)
	assert.Equal(t, "1-2,5-6", m.PodCPUs("p").String())
	require.NoError(t, allocate(t, m, p))
	assert.Equal(t, "1,5", has(m, "p", "main"))
	assert.Equal(t, "shared 2,6", has(m, "p", "rest"))

	// The checkpoint is lost, and the container with exclusive CPUs runs.
	store.Record = nil
	cfg.Running = []cpu.Running{{PodUID: "p", Container: "main", CPUs: cpus(t, "3,7"), Exclusive: true}, {PodUID: "p", Container: "rest", CPUs: cpus(t, "2,6")}}
	m = open(t, "desktop-1s", cfg)
	require.NoError(t, allocate(t, m, p))
	assert.Equal(t, "3,7", has(m, "p", "main"))
	assert.Equal(t, 4, m.PodCPUs("p").Size())

	// A CPU of the pool is gone.
	store.Record = nil
	small := cpu.Config{Reserved: cpus(t, "0,5"), Options: cpu.Options{PodLevel: topology.PodScope}, Store: &state.Memory{Record: saved}}
	m = open(t, "desktop-1s", small)
	require.NoError(t, allocate(t, m, p))
	assert.Equal(t, 4, m.PodCPUs("p").Size())
	assert.False(t, m.PodCPUs("p").Contains(5))
}

// A checkpoint with pools has the kubelet's form since 1.37.
const kubeletPools = `{"policyName":"static","defaultCpuSet":"0,3-4,7","entries":{"p":{"main":"1,5","rest":"2,6"}},"checksum":733026906,` +
	`"data":"{\"policyName\":\"static\",\"defaultCpuSet\":\"0,3-4,7\",\"entries\":{\"p\":{\"main\":\"1,5\",\"rest\":\"2,6\"}},\"podEntries\":{\"p\":{\"cpuSet\":\"1-2,5-6\"}}}","dataChecksum":415616604}`

func TestACheckpointWithPoolsIsChecked(t *testing.T) {
	s, err := cpu.Decode([]byte(kubeletPools))
	require.NoError(t, err)
	record := s.Encode()
	assert.Equal(t, kubeletPools, string(record), "a kubelet can read it")
	again, err := cpu.Decode(record)
	require.NoError(t, err)
	assert.Equal(t, s, again)
	for i := range record {
		broken := append([]byte(nil), record...)
		broken[i] ^= 1 << (i % 5)
		got, err := cpu.Decode(broken)
		if err != nil {
			require.ErrorIs(t, err, checkpoint.ErrKubelet)
			continue
		}
		require.Equal(t, string(record), string(got.Encode()), "byte %d: %s", i, broken)
	}
}
