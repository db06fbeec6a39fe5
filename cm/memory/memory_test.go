package memory_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"flag"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/internal/seedrun"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const gi = 1 << 30

func container(name, amount string, more ...string) v1.Container {
	c := v1.Container{Name: name}
	c.Resources.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse(amount)}
	for _, m := range more {
		kind, size, _ := strings.Cut(m, "=")
		c.Resources.Limits[v1.ResourceName(kind)] = resource.MustParse(size)
	}
	c.Resources.Requests = c.Resources.Limits
	return c
}

func pod(uid string, containers ...v1.Container) *v1.Pod {
	p := &v1.Pod{}
	p.UID, p.Name, p.Spec.Containers = types.UID(uid), uid, containers
	return p
}

func config(t testing.TB, machine string) memory.Config {
	m := topologytest.Machine(t, machine)
	cfg := memory.Config{Machine: m, Policy: memory.Static, Reserved: map[int]memory.Request{}, Total: memory.Request{}}
	for _, n := range m.Nodes {
		cfg.Reserved[n.ID] = memory.Request{v1.ResourceMemory: gi}
		cfg.Total[v1.ResourceMemory] += gi
	}
	return cfg
}

func open(t testing.TB, machine string) *memory.Manager {
	t.Helper()
	m, err := memory.Open(config(t, machine))
	require.NoError(t, err)
	return m
}

func allocate(t testing.TB, m *memory.Manager, p *v1.Pod, nodes ...int) error {
	t.Helper()
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if err := m.Allocate(t.Context(), p, &list[i], topology.Hint{Nodes: topology.MaskOf(nodes...)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// mem-2
func TestReservedMemoryHasToAddUp(t *testing.T) {
	cfg := config(t, "xeon-2s")
	cfg.Total = memory.Request{v1.ResourceMemory: 3 * gi}
	_, err := memory.Open(cfg)
	require.EqualError(t, err, `memory: the total amount 2147483648 of type "memory" is not equal to the value 3221225472 determined by Node Allocatable feature`)
	cfg.Total = nil
	_, err = memory.Open(cfg)
	require.EqualError(t, err, "memory: the Static policy requires reserved memory")
	cfg = config(t, "xeon-2s")
	cfg.Reserved[7] = memory.Request{}
	_, err = memory.Open(cfg)
	require.ErrorContains(t, err, "is for NUMA node 7, which does not exist")
	cfg = config(t, "xeon-2s")
	cfg.Reserved[0]["hugepages-2Mi"] = 2 << 20
	_, err = memory.Open(cfg)
	require.ErrorContains(t, err, `of type "hugepages-2Mi" is not equal`)
	_, err = memory.Open(memory.Config{})
	require.EqualError(t, err, "memory: Config.Machine is nil")
	_, err = memory.ParsePolicy("BestEffort")
	require.EqualError(t, err, `memory: unknown policy: "BestEffort"`)
}

// mem-3: the containers that get exclusive memory.
func TestWhoGetsMemoryOfItsOwn(t *testing.T) {
	burstable := pod("b", container("c", "1Gi"))
	burstable.Spec.Containers[0].Resources.Requests = nil
	burstable.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}
	assert.Nil(t, memory.Wants(burstable, &burstable.Spec.Containers[0], ""))
	p := pod("p", container("c", "1Gi", "hugepages-2Mi=4Mi", "example.com/x=1"))
	assert.Equal(t, memory.Request{"memory": gi, "hugepages-2Mi": 4 << 20}, memory.Wants(p, &p.Spec.Containers[0], ""))
	m := open(t, "xeon-2s")
	assert.True(t, m.Concerns(p))
	assert.False(t, m.Concerns(burstable))
	require.NoError(t, allocate(t, m, burstable))
	assert.Zero(t, m.Nodes("b", "c"))
	p.Spec.Resources = &p.Spec.Containers[0].Resources
	assert.Nil(t, memory.Wants(p, &p.Spec.Containers[0], ""), "as a pod")
}

// mem-3
func TestMemoryIsGivenByNode(t *testing.T) {
	m := open(t, "xeon-2s") // 64 GiB each: 5 of huge pages, 1 reserved
	require.NoError(t, allocate(t, m, pod("a", container("c", "40Gi", "hugepages-1Gi=2Gi")), 1))
	assert.Equal(t, "1", m.Nodes("a", "c").String())
	assert.Equal(t, []memory.Block{{Nodes: []int{1}, Type: "hugepages-1Gi", Size: 2 * gi}, {Nodes: []int{1}, Type: "memory", Size: 40 * gi}}, m.Blocks("a", "c"))
	require.NoError(t, allocate(t, m, pod("a", container("c", "40Gi", "hugepages-1Gi=2Gi"))), "it has it already")
	require.NoError(t, allocate(t, m, pod("b", container("c", "30Gi"))), "no hint: the other node has more")
	assert.Equal(t, "0", m.Nodes("b", "c").String())
	err := allocate(t, m, pod("c", container("c", "40Gi")))
	require.ErrorIs(t, err, memory.ErrTooLittle, "both nodes serve alone: they can't be joined")
	require.ErrorContains(t, err, "memory=42949672960")
	m.Free("a")
	m.Retain(func(uid types.UID) bool { return uid != "b" })
	require.NoError(t, allocate(t, m, pod("c", container("c", "80Gi"))))
	assert.Equal(t, "0,1", m.Nodes("c", "c").String())
	require.ErrorIs(t, allocate(t, m, pod("d", container("c", "1Gi")), 0), nil, "in the same group")
	assert.Equal(t, "0,1", m.Nodes("d", "c").String(), "mem-3: the hint is made wider")
	assert.True(t, m.Holds("d"))
	var total uint64
	for _, b := range m.Allocatable() {
		if b.Type == v1.ResourceMemory {
			total += b.Size
		}
	}
	assert.EqualValues(t, 116*gi, total)
}

// mem-4
func TestInitContainersHandTheirMemoryOn(t *testing.T) {
	m := open(t, "xeon-2s")
	p := pod("a", container("c0", "30Gi"), container("c1", "10Gi"))
	p.Spec.InitContainers = []v1.Container{container("init", "35Gi")}
	require.NoError(t, allocate(t, m, p, 0))
	s := m.State()
	assert.EqualValues(t, 40*gi, s.Nodes[0].Memory[v1.ResourceMemory].Given, "35, used again, and 5")
	other := pod("b", container("c0", "30Gi"))
	other.Spec.InitContainers = []v1.Container{container("init", "10Gi")}
	require.NoError(t, m.Allocate(t.Context(), other, &other.Spec.InitContainers[0], topology.Hint{Nodes: topology.MaskOf(0)}))
	require.NoError(t, m.Allocate(t.Context(), other, &other.Spec.Containers[0], topology.Hint{Nodes: topology.MaskOf(1)}))
	assert.EqualValues(t, 50*gi, m.State().Nodes[0].Memory[v1.ResourceMemory].Given, "elsewhere it is not")
	m.Free("a")
	m.Free("b")
	assert.Zero(t, m.State().Nodes[0].Memory[v1.ResourceMemory].Given)
	assert.Zero(t, m.State().Nodes[0].Assignments)
}

func formatted(hints []topology.Hint) string {
	text := ""
	for _, h := range hints {
		text += fmt.Sprintf("{%s %v}", h.Nodes, h.Preferred)
	}
	return text
}

func TestHintsListTheNodesWithFreeMemory(t *testing.T) {
	m := open(t, "xeon-2s")
	p := pod("a", container("c0", "50Gi", "hugepages-1Gi=3Gi"), container("c1", "20Gi"))
	hints := m.Hints(p, &p.Spec.Containers[0])
	assert.Equal(t, "{0 true}{1 true}{0,1 false}", formatted(hints["memory"]))
	assert.Equal(t, hints["memory"], hints["hugepages-1Gi"])
	assert.Equal(t, "{0,1 true}", formatted(m.Hints(p, nil)["memory"]), "70 at a time")
	require.NoError(t, m.Allocate(t.Context(), p, &p.Spec.Containers[0], topology.Hint{Nodes: topology.MaskOf(1)}))
	assert.Equal(t, "{1 true}", formatted(m.Hints(p, &p.Spec.Containers[0])["memory"]), "where it is")
	assert.Equal(t, "{0 true}", formatted(m.Hints(p, &p.Spec.Containers[1])["memory"]), "mem-3: not over both")
	huge := pod("b", container("c", "1Ti"))
	h := m.Hints(huge, nil)["memory"]
	assert.NotNil(t, h)
	assert.Empty(t, h)
	assert.Nil(t, m.Hints(pod("x"), nil))
}

// The allocations of each machine to consecutive pods.
func TestDecisionsPerMachine(t *testing.T) {
	var b strings.Builder
	for _, name := range topologytest.Names() {
		m := open(t, name)
		fmt.Fprintf(&b, "%s:", name)
		for i, amount := range []string{"512Mi", "4Gi", "40Gi", "40Gi", "100Gi", "1Gi"} {
			uid := fmt.Sprint(i)
			if err := allocate(t, m, pod(uid, container("c", amount))); err != nil {
				require.ErrorIs(t, err, memory.ErrTooLittle)
				fmt.Fprintf(&b, " %s:-", amount)
				continue
			}
			fmt.Fprintf(&b, " %s:[%s]", amount, m.Nodes(types.UID(uid), "c"))
		}
		b.WriteByte('\n')
	}
	path := filepath.Join("testdata", "decisions.golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), b.String())
}

// Pods come and go: allocations never exceed the capacity, groups are not mixed, and
// in the end all memory is free again.
func TestAllocationKeepsItsInvariants(t *testing.T) {
	r := seedrun.Rand(t)
	m := open(t, "epyc-1s-nps4")
	empty := string(m.State().Encode())
	live := map[string]bool{}
	for i := range 120 {
		if r.IntN(3) == 0 && len(live) > 0 {
			uid := slices.Sorted(maps.Keys(live))[r.IntN(len(live))]
			m.Free(types.UID(uid))
			delete(live, uid)
		} else {
			uid := fmt.Sprint(i)
			p := pod(uid, container("c0", fmt.Sprint(1+r.IntN(90), "Gi")), container("c1", "1Gi"))
			if r.IntN(2) == 0 {
				p.Spec.InitContainers = []v1.Container{container("init", fmt.Sprint(1+r.IntN(30), "Gi"))}
			}
			if err := allocate(t, m, p); err != nil {
				require.ErrorIs(t, err, memory.ErrTooLittle)
				m.Free(types.UID(uid))
			} else {
				live[uid] = true
			}
		}
		s := m.State()
		for id, n := range s.Nodes {
			for kind, table := range n.Memory {
				require.Equal(t, table.Allocatable, table.Free+table.Given, "node %d, %s", id, kind)
			}
		}
		for _, containers := range s.Assigned {
			for _, blocks := range containers {
				for _, block := range blocks {
					for _, id := range block.Nodes {
						require.Equal(t, block.Nodes, s.Nodes[id].Group)
					}
				}
			}
		}
	}
	for uid := range live {
		m.Free(types.UID(uid))
	}
	assert.Equal(t, empty, string(m.State().Encode()))
}

// mem-1: the format of the file is the kubelet's.
func TestTheStateIsInTheKubeletsForm(t *testing.T) {
	s := memory.State{
		Policy: memory.Static,
		Nodes: memory.Nodes{1: {}, 0: {Assignments: 2, Group: []int{0, 1}, Memory: map[v1.ResourceName]*memory.Table{
			"memory": {Total: 1, Reserved: 2, Allocatable: 3, Given: 4, Free: 5}, "hugepages-2Mi": {Total: 9, Reserved: 8, Allocatable: 7, Given: 6, Free: 5},
		}}},
		Assigned: memory.Assigned{"u": {"c": {{Nodes: []int{0, 1}, Type: "memory", Size: 77}, {Nodes: []int{0, 1}, Type: "hugepages-2Mi"}}, "d": {}}},
	}
	assert.Equal(t, `{"policyName":"Static","machineState":{"0":{"numberOfAssignments":2,"memoryMap":{"hugepages-2Mi":{"total":9,"systemReserved":8,"allocatable":7,"reserved":6,"free":5},"memory":{"total":1,"systemReserved":2,"allocatable":3,"reserved":4,"free":5}},"cells":[0,1]},"1":{"numberOfAssignments":0,"memoryMap":null,"cells":null}},"entries":{"u":{"c":[{"numaAffinity":[0,1],"type":"memory","size":77},{"numaAffinity":[0,1],"type":"hugepages-2Mi","size":0}],"d":[]}},"checksum":429958845}`, string(s.Encode()))
	assert.Equal(t, `{"policyName":"None","machineState":{},"checksum":4236770233}`, string(memory.State{Policy: memory.None}.Encode()))
}

func TestACorruptStateIsDetected(t *testing.T) {
	m := open(t, "xeon-2s")
	require.NoError(t, allocate(t, m, pod("a", container("c", "1Gi", "hugepages-1Gi=1Gi"))))
	record, cfg := m.State().Encode(), config(t, "xeon-2s")
	for i := range record {
		for bit := range 8 {
			broken := slices.Clone(record)
			broken[i] ^= 1 << bit
			if bit == i%8 {
				store := &state.Memory{Record: broken}
				cfg.Store = store
				next, err := memory.Open(cfg)
				require.NoError(t, err, "byte %d, bit %d", i, bit)
				if store.Kept == nil {
					require.Equal(t, string(record), string(next.State().Encode()))
				} else {
					require.Zero(t, next.Nodes("a", "c"), "no part of it is used")
				}
			}
			got, err := memory.Decode(broken)
			if err != nil {
				require.ErrorIs(t, err, checkpoint.ErrKubelet)
				continue
			}
			require.Equal(t, string(record), string(got.Encode()), "byte %d, bit %d", i, bit)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"policyName":"None","machineState":{},"checksum":4236770233}`))
	f.Add([]byte(`{"policyName":"Static","machineState":{"0":null},"entries":{"u":{"c":null}},"checksum":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := memory.Decode(data)
		if err != nil {
			require.ErrorIs(t, err, checkpoint.ErrKubelet)
			return
		}
		_, _ = memory.Replay(memory.Empty(topologytest.Machine(t, "xeon-2s"), nil), s.Assigned)
	})
}

// mem-1: the repair of a state that doesn't match the machine.
func TestAStateThatDoesNotMatchTheMachineIsRepaired(t *testing.T) {
	saved := func(machine string, nodes []int, amount string) []byte {
		m := open(t, machine)
		require.NoError(t, allocate(t, m, pod("a", container("c", amount)), nodes...))
		return m.State().Encode()
	}
	for name, tc := range map[string]struct {
		saved    []byte
		runs     bool
		want     string
		kept     bool
		conflict string
		kubelet  string
	}{
		"it fits":                 {saved: saved("xeon-2s", []int{1}, "1Gi"), want: "1"},
		"of another policy":       {saved: memory.State{Policy: memory.None}.Encode(), kept: true, kubelet: `configured policy "Static" differs from state checkpoint policy "None"`},
		"broken":                  {saved: []byte("{"), kept: true, kubelet: "checkpoint is corrupted"},
		"a node is gone":          {saved: saved("xeon-4s", []int{3}, "1Gi"), kept: true, kubelet: "the expected machine state is different from the real one"},
		"a node is gone, it runs": {saved: saved("xeon-4s", []int{3}, "1Gi"), runs: true, conflict: `container "c" of pod "a", memory on NUMA nodes [3]: a NUMA node does not exist`},
		"there is less memory":    {saved: saved("xeon-4s", []int{1}, "100Gi"), runs: true, conflict: "not enough memory"},
		"the machine has changed": {saved: saved("xeon-4s", []int{1}, "1Gi"), want: "1", kept: true, kubelet: "different from the real one"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t, "xeon-2s")
			store := &state.Memory{Record: tc.saved}
			cfg.Store, cfg.Runs = store, func(types.UID, string) bool { return tc.runs }
			m, err := memory.Open(cfg)
			if tc.conflict != "" {
				var conflict *memory.ConflictError
				require.ErrorAs(t, err, &conflict)
				require.ErrorContains(t, err, tc.conflict)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, m.Nodes("a", "c").String())
			assert.Equal(t, tc.kept, store.Kept != nil)
			cfg.Store, cfg.RefuseForeign = &state.Memory{Record: tc.saved}, true
			_, err = memory.Open(cfg)
			if tc.kubelet == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.kubelet)
			}
		})
	}
}

func TestMemoryThatCantBeSavedIsNotGiven(t *testing.T) {
	cfg := config(t, "xeon-2s")
	store := new(full)
	cfg.Store = store
	var pinned []memory.PinInfo
	cfg.Hooks.Pinned = func(i memory.PinInfo) { pinned = append(pinned, i) }
	m, err := memory.Open(cfg)
	require.NoError(t, err)
	store.err = errors.New("the disk is full")
	a := pod("a", container("c", "1Gi"))
	require.ErrorContains(t, allocate(t, m, a), "the disk is full")
	assert.Zero(t, m.Nodes("a", "c"))
	store.err = nil
	require.NoError(t, allocate(t, m, a))
	require.NoError(t, allocate(t, m, pod("b", v1.Container{Name: "c"})), "it requests none")
	require.Len(t, pinned, 2)
	assert.ErrorContains(t, pinned[0].Error, "the disk is full")
	assert.Equal(t, memory.PinInfo{Pod: a, Container: "c", Assignment: topology.NodeExclusive}, pinned[1])
}

type full struct {
	state.Memory
	err error
}

func (f *full) Save(record []byte) error {
	if f.err != nil {
		return f.err
	}
	return f.Memory.Save(record)
}
