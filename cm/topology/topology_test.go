package topology_test

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// Machines as sysfs describes them.
func TestMachinesAreReadFromSysfs(t *testing.T) {
	var b strings.Builder
	for _, name := range topologytest.Names() {
		m := topologytest.Machine(t, name)
		cores, caches := map[int]bool{}, map[int]bool{}
		for _, c := range m.CPUs {
			cores[c.Core], caches[c.Uncore] = true, true
		}
		fmt.Fprintf(&b, "%s: CPUs %s, offline [%s], %d sockets, %d cores of %d threads, %d caches\n",
			name, m.All(), m.Offline, m.Sockets(), len(cores), m.ThreadsPerCore(), len(caches))
		for _, n := range m.Nodes {
			fmt.Fprintf(&b, "  node %d: CPUs %s, %d MiB, pages %s, distances %v\n",
				n.ID, m.InNodes(topology.MaskOf(n.ID)), n.MemoryBytes>>20, pages(n.HugePages), n.Distances)
		}
	}
	golden(t, "machines.golden", b.String())
}

func pages(in map[int64]int64) string {
	var out []string
	for _, size := range slices.Sorted(maps.Keys(in)) {
		out = append(out, fmt.Sprintf("%dKi=%d", size>>10, in[size]))
	}
	return fmt.Sprint(out)
}

func TestErrorsNameTheSysfsFile(t *testing.T) {
	whole := func() fstest.MapFS {
		root, err := topologytest.FS(topologytest.Description("xeon-2s"))
		require.NoError(t, err)
		return root
	}
	for name, tc := range map[string]struct {
		change  func(fstest.MapFS)
		wantErr string
	}{
		"no list of CPUs": {func(f fstest.MapFS) { delete(f, "sys/devices/system/cpu/online") }, "sys/devices/system/cpu/online"},
		"no CPU":          {put("sys/devices/system/cpu/online", ""), "no CPU is online"},
		"a bad list":      {put("sys/devices/system/cpu/online", "0-"), `sys/devices/system/cpu/online: topology: CPU list: "0-"`},
		"a huge list":     {put("sys/devices/system/cpu/online", "0-4294967295"), "sys/devices/system/cpu/online"},
		"a bad socket":    {put("sys/devices/system/cpu/cpu3/topology/physical_package_id", "x"), "cpu3/topology/physical_package_id"},
		"bad siblings":    {put("sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "x"), "cpu3/topology/thread_siblings_list"},
		"bad memory":      {put("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: much kB"), "node1/meminfo: MemTotal"},
		"no memory":       {put("sys/devices/system/node/node1/meminfo", "Node 1 MemFree: 1 kB"), "node1/meminfo has no MemTotal"},
		"bad distances":   {put("sys/devices/system/node/node1/distance", "10 x"), "node1/distance"},
		"few distances":   {put("sys/devices/system/node/node1/distance", "10"), "node 1 has 1 distances to 2 nodes"},
		"a lost CPU":      {put("sys/devices/system/node/node1/cpulist", "1"), "is online but not in a NUMA node"},
		"a far node":      {put("sys/devices/system/node/online", "0,99"), "node99"},
	} {
		t.Run(name, func(t *testing.T) {
			root := whole()
			tc.change(root)
			_, err := topology.Read(root)
			require.ErrorContains(t, err, tc.wantErr)
		})
	}
}

func put(name, text string) func(fstest.MapFS) {
	return func(f fstest.MapFS) { f[name] = &fstest.MapFile{Data: []byte(text)} }
}

func TestThisMachineIsRead(t *testing.T) {
	if _, err := fs.Stat(os.DirFS("/"), "sys/devices/system/cpu/online"); err != nil {
		t.Skip("no sysfs here")
	}
	m, err := topology.Read(os.DirFS("/"))
	require.NoError(t, err)
	assert.False(t, m.All().IsEmpty())
}

func FuzzParseCPUs(f *testing.F) {
	for _, s := range []string{"", "0", "0-3,8", "3-1", "0-99999999999", ",", "-1", "0-65535,0-65535"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		set, err := topology.ParseCPUs(s)
		if err != nil {
			return
		}
		again, err := topology.ParseCPUs(set.String())
		require.NoError(t, err)
		require.True(t, again.Equals(set))
	})
}

func FuzzFS(f *testing.F) {
	for _, name := range topologytest.Names() {
		f.Add(topologytest.Description(name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		root, err := topologytest.FS(text)
		if err == nil {
			_, _ = topology.Read(root) // doesn't panic
		}
	})
}

// top-2, top-3: the result of hints, under each policy.
func TestHintsAreMerged(t *testing.T) {
	two := topologytest.Machine(t, "xeon-2s")
	four := topologytest.Machine(t, "xeon-4s")
	h := func(preferred bool, nodes ...int) topology.Hint {
		return topology.Hint{Nodes: topology.MaskOf(nodes...), Preferred: preferred}
	}
	either := []topology.Hint{h(true, 0), h(true, 1), h(false, 0, 1)}
	for name, tc := range map[string]struct {
		m         *topology.Machine
		providers []topology.Hints
		opts      topology.Options
		best      topology.Hint
		single    topology.Hint // the result for single-numa-node; the same, if zero
		refuse    string        // by which policies
	}{
		"no preference":               {m: two, providers: []topology.Hints{nil, {"x": nil}}, best: h(true, 0, 1), single: topology.Any()},
		"the lowest":                  {m: two, providers: []topology.Hints{{"cpu": either}}, best: h(true, 0)},
		"common nodes":                {m: two, providers: []topology.Hints{{"cpu": either}, {"gpu": {h(true, 1), h(false, 0, 1)}}}, best: h(true, 1)},
		"both, not the same":          {m: two, providers: []topology.Hints{{"cpu": {h(true, 0)}}, {"gpu": {h(true, 1), h(false, 0, 1)}}}, best: h(false, 0), single: topology.Hint{}, refuse: "restricted single-numa-node"},
		"nothing in common":           {m: two, providers: []topology.Hints{{"cpu": {h(true, 0)}}, {"gpu": {h(true, 1)}}}, best: h(false, 0, 1), single: topology.Hint{}, refuse: "restricted single-numa-node"},
		"one can't be given":          {m: two, providers: []topology.Hints{{"cpu": either}, {"gpu": {}}}, best: h(false, 0), single: topology.Hint{}, refuse: "restricted single-numa-node"},
		"only over both":              {m: two, providers: []topology.Hints{{"cpu": {h(true, 0, 1)}}}, best: h(true, 0, 1), single: topology.Hint{}, refuse: "single-numa-node"},
		"not as narrow as it might":   {m: two, providers: []topology.Hints{{"cpu": {h(false, 0, 1)}}}, best: h(false, 0, 1), single: topology.Hint{}, refuse: "restricted single-numa-node"},
		"the closest":                 {m: four, opts: topology.Options{PreferClosest: true}, providers: []topology.Hints{{"cpu": {h(true, 0, 2), h(true, 2, 3)}}}, best: h(true, 2, 3), single: topology.Hint{}, refuse: "single-numa-node"},
		"the lowest, though far":      {m: four, providers: []topology.Hints{{"cpu": {h(true, 0, 2), h(true, 2, 3)}}}, best: h(true, 0, 2), single: topology.Hint{}, refuse: "single-numa-node"},
		"as many as the neediest has": {m: four, providers: []topology.Hints{{"cpu": {h(false, 0, 1, 2), h(false, 1, 2)}}, {"gpu": {h(false, 1), h(false, 1, 2)}}}, best: h(false, 1, 2), single: topology.Hint{}, refuse: "restricted single-numa-node"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range []topology.Policy{topology.BestEffort, topology.Restricted, topology.SingleNUMANode} {
				best, admitted := topology.Merge(tc.m, p, tc.opts, tc.providers)
				if p == topology.SingleNUMANode && (tc.single != topology.Hint{} || tc.refuse != "") {
					assert.Equal(t, tc.single.Preferred, best.Preferred)
				} else {
					assert.Equal(t, tc.best, best, "%s", p)
				}
				assert.Equal(t, !strings.Contains(tc.refuse, string(p)), admitted, "%s", p)
			}
			best, admitted := topology.Merge(tc.m, topology.None, tc.opts, tc.providers)
			assert.Equal(t, topology.Hint{}, best)
			assert.True(t, admitted, "top-3: none admits all")
		})
	}
}

// The order of hints does not affect the result.
func TestTheOrderOfHintsDoesNotMatter(t *testing.T) {
	m := topologytest.Machine(t, "epyc-2s-nps4")
	var a, b []topology.Hint
	for set := range m.AllNodes().Subsets() {
		a = append(a, topology.Hint{Nodes: set, Preferred: set.Count() == 2})
		if set.Has(3) {
			b = append(b, topology.Hint{Nodes: set, Preferred: set.Count() == 1})
		}
	}
	first, _ := topology.Merge(m, topology.BestEffort, topology.Options{}, []topology.Hints{{"a": a}, {"b": b}})
	slices.Reverse(a)
	for range 3 {
		again, _ := topology.Merge(m, topology.BestEffort, topology.Options{}, []topology.Hints{{"b": b}, {"a": a}})
		require.Equal(t, first, again)
	}
}

// top-1
func TestPoliciesScopesAndOptions(t *testing.T) {
	_, err := topology.ParsePolicy("strict")
	require.EqualError(t, err, `topology: unknown policy: "strict"`)
	_, err = topology.ParseScope("node")
	require.EqualError(t, err, `topology: unknown scope: "node"`)
	o, err := topology.ParseOptions(map[string]string{"prefer-closest-numa-nodes": "true", "max-allowable-numa-nodes": "12"})
	require.NoError(t, err)
	assert.Equal(t, topology.Options{PreferClosest: true, MaxNodes: 12}, o)
	for name, value := range map[string]string{"prefer-closest-numa-nodes": "often", "max-allowable-numa-nodes": "4", "fast": "true"} {
		_, err := topology.ParseOptions(map[string]string{name: value})
		require.ErrorContains(t, err, fmt.Sprintf("%q", name))
	}
	var nodes []topology.Node
	for i := range 9 {
		nodes = append(nodes, topology.Node{ID: i})
	}
	m, err := topology.NewMachine([]topology.CPU{{}}, nodes, topologytest.Machine(t, "vm-1cpu").Offline)
	require.NoError(t, err)
	_, err = topology.NewManager(topology.Config{Machine: m, Policy: topology.BestEffort})
	require.ErrorContains(t, err, "unsupported on machines with more than 8 NUMA Nodes")
	_, err = topology.NewManager(topology.Config{Machine: m, Policy: topology.BestEffort, Options: topology.Options{MaxNodes: 9}})
	require.NoError(t, err)
	_, err = topology.NewManager(topology.Config{Machine: m})
	require.NoError(t, err, "the policy none ignores the nodes")
}

func TestSubsetsComeByNumberOfNodes(t *testing.T) {
	var got []string
	for set := range topology.MaskOf(0, 2, 5, 99, -1).Subsets() {
		got = append(got, set.String())
	}
	assert.Equal(t, []string{"0", "2", "5", "0,2", "0,5", "2,5", "0,2,5"}, got)
	for range topology.MaskOf(1, 2, 3).Subsets() {
		break // may be left
	}
}
