package memory_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/runtime"
)

// podOf has pod-level resources and containers: "" for one without resources. Names of init containers begin
// with "init", those of sidecars with "side".
func podOf(uid, amount string, containers ...[2]string) *v1.Pod {
	p := pod(uid)
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

func openPools(t *testing.T, store state.Store, scope topology.Scope) *memory.Manager {
	t.Helper()
	cfg := config(t, "xeon-2s")
	cfg.PodLevel, cfg.Store = scope, store
	m, err := memory.Open(cfg)
	require.NoError(t, err)
	return m
}

func describe(blocks []memory.Block) string {
	text := ""
	for _, b := range blocks {
		text += fmt.Sprintf("%s %d of %v", b.Type, b.Size/gi, b.Nodes)
	}
	return text
}

// free returns the free memory of a node, in GiB.
func free(m *memory.Manager, node int) int {
	return int(m.State().Nodes[node].Memory["memory"].Free / gi)
}

// mem-5
func TestAPoolIsDividedAmongTheContainers(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want map[string]string // of the state
	}{
		"shared only":      {podOf("p", "4Gi", [2]string{"main", ""}, [2]string{"more", ""}), map[string]string{"main": "memory 4 of [1]", "more": "memory 4 of [1]"}},
		"mixed":            {podOf("p", "4Gi", [2]string{"main", "1Gi"}, [2]string{"rest", ""}), map[string]string{"main": "memory 1 of [1]", "rest": "memory 3 of [1]"}},
		"some is not used": {podOf("p", "4Gi", [2]string{"main", "1Gi"}), map[string]string{"main": "memory 1 of [1]"}},
		"init containers and sidecars": {
			podOf("p", "8Gi", [2]string{"init-all", ""}, [2]string{"side-own", "1Gi"}, [2]string{"init-own", "7Gi"}, [2]string{"init-rest", ""}, [2]string{"side-rest", ""}, [2]string{"main", "2Gi"}),
			map[string]string{
				"init-all": "memory 8 of [1]", "side-own": "memory 1 of [1]", "init-own": "memory 7 of [1]", "init-rest": "memory 7 of [1]",
				"side-rest": "memory 5 of [1]", "main": "memory 2 of [1]",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := openPools(t, nil, topology.PodScope)
			before := free(m, 1)
			require.NoError(t, allocate(t, m, tc.pod, 1))
			got := map[string]string{}
			for name, blocks := range m.State().Assigned["p"] {
				got[name] = describe(blocks)
				assert.Equal(t, topology.MaskOf(1), m.Nodes("p", name))
			}
			assert.Equal(t, tc.want, got)
			total := tc.pod.Spec.Resources.Requests.Memory().Value() / gi
			assert.Equal(t, fmt.Sprintf("memory %d of [1]", total), describe(m.PodBlocks("p")))
			assert.Equal(t, before-int(total), free(m, 1), "the pool counts, and not its parts")
			if _, shared := tc.want["rest"]; shared {
				assert.Nil(t, m.Blocks("p", "rest"), "no container has it alone")
				assert.Equal(t, "memory 1 of [1]", describe(m.Blocks("p", "main")))
			}
			assert.True(t, m.Holds("p"))
			m.Retain(func(types.UID) bool { return false })
			assert.Equal(t, before, free(m, 1))
			assert.False(t, m.Holds("p"))
			assert.Nil(t, m.PodBlocks("p"))
		})
	}
}

func TestPoolsWithoutMemoryForSomeContainersAreRejected(t *testing.T) {
	for want, p := range map[string]*v1.Pod{
		"sum of exclusive container memory requests equals pod budget, leaving no memory for shared containers": podOf("p", "4Gi", [2]string{"main", "4Gi"}, [2]string{"rest", ""}),
		"pod has shared init containers but no memory available for them":                                       podOf("p", "4Gi", [2]string{"side-own", "4Gi"}, [2]string{"init-rest", ""}),
	} {
		m := openPools(t, nil, topology.PodScope)
		var refusal *runtime.Rejection
		require.ErrorAs(t, allocate(t, m, p), &refusal)
		assert.Equal(t, runtime.Rejection{Reason: "EmptyPodSharedPoolError", Message: "pod rejected, " + want, Err: refusal.Err}, *refusal)
		assert.False(t, m.Holds("p"))
		assert.Equal(t, topology.Hints{"memory": {}}, m.Hints(p, nil), "and no nodes suit it")
	}
	m := openPools(t, nil, topology.PodScope)
	assert.ErrorIs(t, allocate(t, m, podOf("p", "4096Gi", [2]string{"main", ""})), memory.ErrTooLittle)
}

// With the scope container, pod-level resources only determine that the pod is Guaranteed.
func TestContainersOfAPodWithPodLevelResources(t *testing.T) {
	mixed := podOf("p", "4Gi", [2]string{"main", "1Gi"}, [2]string{"rest", ""})
	m := openPools(t, nil, topology.ContainerScope)
	require.NoError(t, allocate(t, m, mixed, 1))
	assert.Equal(t, "memory 1 of [1]", describe(m.Blocks("p", "main")))
	assert.Zero(t, m.Nodes("p", "rest"))
	assert.Nil(t, m.PodBlocks("p"))
	assert.False(t, openPools(t, nil, "").Concerns(mixed), "without the feature gate")
	cfg := config(t, "xeon-2s")
	cfg.PodLevel = "node"
	_, err := memory.Open(cfg)
	assert.EqualError(t, err, `memory: Config.PodLevel: unknown scope: "node"`)
}

// A restart keeps the pools, also those of a kubelet, which does not save which containers share one.
func TestPoolsSurviveARestart(t *testing.T) {
	p := podOf("p", "4Gi", [2]string{"main", "1Gi"}, [2]string{"rest", ""})
	store := &state.Memory{}
	cfg := config(t, "xeon-2s")
	var reported []string
	cfg.PodLevel, cfg.Store = topology.PodScope, store
	cfg.Hooks.Pinned = func(i memory.PinInfo) {
		reported = append(reported, fmt.Sprint(i.Container, " ", i.Assignment, " ", i.Error))
	}
	m, err := memory.Open(cfg)
	require.NoError(t, err)
	require.NoError(t, m.Allocate(t.Context(), p, &p.Spec.Containers[0], topology.Hint{Nodes: topology.MaskOf(1)}))
	saved := string(store.Record)
	require.NoError(t, allocate(t, m, p, 1))
	assert.Equal(t, []string{"main pod_exclusive <nil>", "rest pod_shared <nil>"}, reported)
	assert.Equal(t, saved, string(store.Record), "the first container gets all")
	m = openPools(t, store, topology.PodScope)
	assert.Equal(t, saved, string(m.State().Encode()))
	assert.Nil(t, m.Blocks("p", "rest"))
	assert.Equal(t, []topology.Hint{{Nodes: topology.MaskOf(1), Preferred: true}}, m.Hints(p, nil)["memory"])

	// As kubelet 1.37.2 saves it, with PodLevelResourceManagers.
	store.Record = []byte(kubeletPools)
	m = openPools(t, store, topology.PodScope)
	assert.Equal(t, "memory 4 of [0]", describe(m.PodBlocks("p")))
	require.NoError(t, allocate(t, m, p, 1))
	assert.Equal(t, "memory 1 of [0]", describe(m.Blocks("p", "main")))
	assert.Nil(t, m.Blocks("p", "rest"))

	// The node of the pool is gone.
	store.Record = []byte(saved)
	cfg = config(t, "desktop-1s")
	cfg.PodLevel, cfg.Store = topology.PodScope, store
	m, err = memory.Open(cfg)
	require.NoError(t, err)
	assert.False(t, m.Holds("p"))
	store.Record = []byte(saved)
	cfg.Runs = func(_ types.UID, container string) bool { return container == "rest" }
	_, err = memory.Open(cfg)
	assert.ErrorContains(t, err, `container "rest" of pod "p", memory on NUMA nodes [1]: a NUMA node does not exist`)
}

// A checkpoint with pools has the kubelet's form since 1.37.
const kubeletPools = `{"policyName":"Static","machineState":{"0":{"numberOfAssignments":1,"memoryMap":{"memory":{"total":8589934592,"systemReserved":1073741824,"allocatable":7516192768,"reserved":4294967296,"free":3221225472}},"cells":[0]}},` +
	`"entries":{"p":{"main":[{"numaAffinity":[0],"type":"memory","size":1073741824}],"rest":[{"numaAffinity":[0],"type":"memory","size":3221225472}]}},"checksum":1529398429,` +
	`"data":"{\"policyName\":\"Static\",\"machineState\":{\"0\":{\"numberOfAssignments\":1,\"memoryMap\":{\"memory\":{\"total\":8589934592,\"systemReserved\":1073741824,\"allocatable\":7516192768,\"reserved\":4294967296,\"free\":3221225472}},\"cells\":[0]}},` +
	`\"entries\":{\"p\":{\"main\":[{\"numaAffinity\":[0],\"type\":\"memory\",\"size\":1073741824}],\"rest\":[{\"numaAffinity\":[0],\"type\":\"memory\",\"size\":3221225472}]}},` +
	`\"podEntries\":{\"p\":{\"memoryBlocks\":[{\"numaAffinity\":[0],\"type\":\"memory\",\"size\":4294967296}]}}}","dataChecksum":902483577}`

func TestACheckpointWithPoolsIsChecked(t *testing.T) {
	s, err := memory.Decode([]byte(kubeletPools))
	require.NoError(t, err)
	record := s.Encode()
	assert.Equal(t, kubeletPools, string(record), "a kubelet can read it")
	again, err := memory.Decode(record)
	require.NoError(t, err)
	assert.Equal(t, s, again)
	for i := range record {
		broken := append([]byte(nil), record...)
		broken[i] ^= 1 << (i % 5)
		got, err := memory.Decode(broken)
		if err != nil {
			require.ErrorIs(t, err, checkpoint.ErrKubelet)
			continue
		}
		require.Equal(t, string(record), string(got.Encode()), "byte %d: %s", i, broken)
	}
}
