package cpu_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
)

// One decision of each kind on 256 CPUs in eight NUMA nodes, a third of them
// allocated; "set" is the difference of two sets of that size, the cheapest operation
// for comparison.
func BenchmarkDecisionOn256CPUs(b *testing.B) {
	m := topologytest.Machine(b, "epyc-2s-nps4")
	free := m.Where(func(c topology.CPU) bool { return c.ID%3 != 0 })
	b.Run("set", func(b *testing.B) {
		other := cpuset.New(1, 2, 3)
		for b.Loop() {
			m.All().Difference(free.Union(other))
		}
	})
	for _, v := range variants {
		b.Run("take/"+v.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := cpu.Take(m, v.opts, free, 24); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("hints", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			cpu.Hints(m, cpu.Options{}, free, cpuset.New(), 24)
		}
	})
	b.Run("merge", func(b *testing.B) {
		hints := cpu.Hints(m, cpu.Options{}, free, cpuset.New(), 24)
		all := []topology.Hints{{"cpu": hints}, {"memory": hints}, {"gpu": hints}}
		b.ReportAllocs()
		for b.Loop() {
			topology.Merge(m, topology.Restricted, topology.Options{}, all)
		}
	})
}

// A pod admitted and freed, with 20 others present: the work of a node, without the
// disk.
func BenchmarkAdmitOn256CPUs(b *testing.B) {
	m := open(b, "epyc-2s-nps4", cpu.Config{})
	joint, err := topology.NewManager(topology.Config{Machine: topologytest.Machine(b, "epyc-2s-nps4"), Policy: topology.Restricted, Providers: []topology.Provider{m}})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 20 {
		if err := joint.Admit(b.Context(), pod(fmt.Sprint("other", i), "4")); err != nil {
			b.Fatal(err)
		}
	}
	p := pod("p", "8")
	b.ReportAllocs()
	for b.Loop() {
		if err := joint.Admit(b.Context(), p); err != nil {
			b.Fatal(err)
		}
		joint.Free(types.UID("p"))
	}
}
