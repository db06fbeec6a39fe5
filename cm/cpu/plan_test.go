package cpu_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
	"github.com/kubeparts/kubeparts/internal/seedrun"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var variants = []struct {
	name string
	opts cpu.Options
}{
	{"packed", cpu.Options{}},
	{"full-pcpus-only", cpu.Options{FullPCPUsOnly: true}},
	{"across-numa", cpu.Options{DistributeAcrossNUMA: true}},
	{"across-cores", cpu.Options{DistributeAcrossCore: true}},
	{"uncore", cpu.Options{AlignByUncoreCache: true}},
}

// The allocations of each machine to consecutive pods, under each option (cpu-5,
// cpu-6).
func TestDecisionsPerMachine(t *testing.T) {
	var b strings.Builder
	for _, name := range topologytest.Names() {
		m := topologytest.Machine(t, name)
		for _, v := range variants {
			fmt.Fprintf(&b, "%s %s:", name, v.name)
			free := m.All()
			for _, n := range []int{1, 2, 3, 4, 8, 20, m.All().Size() / 2, 2} {
				cpus, err := cpu.Take(m, v.opts, free, n)
				if errors.Is(err, cpu.ErrTooFew) {
					fmt.Fprintf(&b, " %d:-", n)
					continue
				}
				require.NoError(t, err)
				fmt.Fprintf(&b, " %d:%s", n, cpus)
				free = free.Difference(cpus)
			}
			b.WriteByte('\n')
		}
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

func cpus(t testing.TB, list string) cpuset.CPUSet {
	t.Helper()
	set, err := topology.ParseCPUs(list)
	require.NoError(t, err)
	return set
}

// cpu-5, cpu-6: the order in which CPUs are allocated.
func TestCPUsAreTakenInOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		machine string
		opts    cpu.Options
		free    string // "": all
		n       int
		want    string
	}{
		"a core before threads":                      {"desktop-1s", cpu.Options{}, "", 2, "0,4"},
		"a whole node":                               {"xeon-2s-smt-off", cpu.Options{}, "", 16, "0-15"},
		"a node that is whole before one that isn't": {"xeon-2s-smt-off", cpu.Options{}, "1-31", 16, "16-31"},
		"the fuller node first":                      {"xeon-2s-smt-off", cpu.Options{}, "0-15,20-31", 4, "20-23"},
		"half a core before a whole one":             {"desktop-1s", cpu.Options{}, "0-2,4-7", 1, "7"},
		"sockets within one node":                    {"two-sockets-one-node", cpu.Options{}, "1-15", 8, "4-7,12-15"},
		"a whole cache":                              {"epyc-1s-nps4", cpu.Options{AlignByUncoreCache: true}, "", 16, "0-7,64-71"},
		"the rest in one cache":                      {"epyc-1s-nps4", cpu.Options{AlignByUncoreCache: true}, "1-127", 18, "8-15,72-79,1,65"},
		"in equal shares":                            {"xeon-2s-smt-off", cpu.Options{DistributeAcrossNUMA: true}, "", 20, "0-9,16-25"},
		"not spread if one is enough":                {"xeon-2s-smt-off", cpu.Options{DistributeAcrossNUMA: true}, "", 10, "0-9"},
		"the odd one from where most is left":        {"xeon-2s-smt-off", cpu.Options{DistributeAcrossNUMA: true}, "0-13,16-31", 21, "0-9,16-26"},
		"shares of whole cores":                      {"xeon-4s", cpu.Options{DistributeAcrossNUMA: true, FullPCPUsOnly: true}, "", 20, "0-4,8-12,32-36,40-44"},
		"a thread of each core":                      {"desktop-1s", cpu.Options{DistributeAcrossCore: true}, "", 4, "0-3"},
		"then the second ones":                       {"desktop-1s", cpu.Options{DistributeAcrossCore: true}, "", 6, "0-5"},
		"a thread of each core, numbered in pairs":   {"hybrid-1s", cpu.Options{DistributeAcrossCore: true}, "", 4, "0,2,4,6"},
		"slow cores count as whole":                  {"hybrid-1s", cpu.Options{}, "", 1, "16"},
		"nothing":                                    {"desktop-1s", cpu.Options{}, "", 0, ""},
		"CPUs that are off are not free":             {"offline-cpus", cpu.Options{}, "0-15", 2, "4,12"},
	} {
		t.Run(name, func(t *testing.T) {
			m := topologytest.Machine(t, tc.machine)
			free := m.All()
			if tc.free != "" {
				free = cpus(t, tc.free)
			}
			got, err := cpu.Take(m, tc.opts, free, tc.n)
			require.NoError(t, err)
			assert.Equal(t, cpus(t, tc.want).String(), got.String())
		})
	}
	_, err := cpu.Take(topologytest.Machine(t, "vm-1cpu"), cpu.Options{}, cpus(t, "0-7"), 2)
	require.EqualError(t, err, "not enough cpus available to satisfy request: requested=2, available=1")
}

func TestCPUsAreTakenFromTheNodesOfTheHint(t *testing.T) {
	m := topologytest.Machine(t, "epyc-2s-nps4")
	near := func(nodes ...int) topology.Hint { return topology.Hint{Nodes: topology.MaskOf(nodes...)} }
	got, err := cpu.Place(m, cpu.Options{}, m.All(), 4, near(2))
	require.NoError(t, err)
	assert.Equal(t, "32-33,160-161", got.String())
	got, err = cpu.Place(m, cpu.Options{}, m.All(), 34, near(2))
	require.NoError(t, err)
	assert.Equal(t, "0,32-47,128,160-175", got.String(), "the rest from elsewhere")
	got, err = cpu.Place(m, cpu.Options{AlignBySocket: true}, m.All(), 34, near(6))
	require.NoError(t, err)
	assert.Equal(t, "64-80,192-208", got.String(), "from the whole socket")
}

func TestHintsListTheNodesWithFreeCPUs(t *testing.T) {
	m := topologytest.Machine(t, "xeon-2s-smt-off")
	formatted := func(opts cpu.Options, free, reusable string, n int) string {
		text := ""
		for _, h := range cpu.Hints(m, opts, cpus(t, free), cpus(t, reusable), n) {
			text += fmt.Sprintf("{%s %v}", h.Nodes, h.Preferred)
		}
		return text
	}
	assert.Equal(t, "{0 true}{1 true}{0,1 false}", formatted(cpu.Options{}, "0-31", "", 4))
	assert.Equal(t, "{1 true}{0,1 false}", formatted(cpu.Options{}, "13-31", "", 4))
	assert.Equal(t, "{0,1 true}", formatted(cpu.Options{}, "0-31", "", 20))
	assert.Equal(t, "{0,1 false}", formatted(cpu.Options{}, "13-18", "", 4), "it might fit into one")
	assert.Equal(t, "{0 true}{0,1 false}", formatted(cpu.Options{}, "4-31", "0-1", 4), "cpu-7: all reusable CPUs")
	assert.Empty(t, formatted(cpu.Options{}, "0-3", "", 5))
	m = topologytest.Machine(t, "epyc-1s-nps4")
	for _, h := range cpu.Hints(m, cpu.Options{AlignBySocket: true}, m.All(), cpuset.New(), 4) {
		assert.True(t, h.Preferred, "cpu-6: all in one socket")
	}
}

// Only free CPUs are allocated, each once, and equal inputs have equal results.
func TestTakingKeepsItsInvariants(t *testing.T) {
	r := seedrun.Rand(t)
	for _, name := range topologytest.Names() {
		m := topologytest.Machine(t, name)
		for range 15 {
			var ids []int
			for _, c := range m.CPUs {
				if r.IntN(4) > 0 {
					ids = append(ids, c.ID)
				}
			}
			free := cpuset.New(ids...)
			n := r.IntN(free.Size() + 1)
			opts := variants[r.IntN(len(variants))].opts
			where := topology.Hint{Nodes: topology.Mask(r.Uint64()) & m.AllNodes()}
			got, err := cpu.Place(m, opts, free, n, where)
			require.NoError(t, err)
			require.Equal(t, n, got.Size())
			require.True(t, got.IsSubsetOf(free))
			again, err := cpu.Place(m, opts, free, n, where)
			require.NoError(t, err)
			require.True(t, got.Equals(again))
		}
	}
}

// cpu-6
func TestOptions(t *testing.T) {
	o, err := cpu.ParseOptions(map[string]string{
		"full-pcpus-only": "true", "distribute-cpus-across-numa": "true", "align-by-socket": "1", "strict-cpu-reservation": "true",
	})
	require.NoError(t, err)
	assert.Equal(t, cpu.Options{FullPCPUsOnly: true, DistributeAcrossNUMA: true, AlignBySocket: true, StrictReservation: true}, o)
	for options, wantErr := range map[string]string{
		"fast=true":            `unknown CPU Manager Policy option: "fast"`,
		"align-by-socket=much": `bad value for option "align-by-socket"`,
		"full-pcpus-only=true,distribute-cpus-across-cores=true":                  "can not be used at the same time",
		"distribute-cpus-across-numa=true,distribute-cpus-across-cores=true":      "can not be used at the same time",
		"prefer-align-cpus-by-uncorecache=true,distribute-cpus-across-cores=true": "can not be used at the same time",
		"prefer-align-cpus-by-uncorecache=true,distribute-cpus-across-numa=true":  "can not be used at the same time",
	} {
		in := map[string]string{}
		for pair := range strings.SplitSeq(options, ",") {
			name, value, _ := strings.Cut(pair, "=")
			in[name] = value
		}
		_, err := cpu.ParseOptions(in)
		require.ErrorContains(t, err, wantErr)
	}
	_, err = cpu.Open(cpu.Config{Machine: topologytest.Machine(t, "xeon-2s"), Policy: cpu.Static, ReservedMilli: 1, Options: cpu.Options{AlignBySocket: true}, Topology: topology.SingleNUMANode})
	require.ErrorContains(t, err, "incompatible with option align-by-socket")
	_, err = cpu.Open(cpu.Config{Machine: topologytest.Machine(t, "two-sockets-one-node"), Policy: cpu.Static, ReservedMilli: 1, Options: cpu.Options{AlignBySocket: true}})
	require.ErrorContains(t, err, "2 sockets in 1 NUMA nodes")
}
