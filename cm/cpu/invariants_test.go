package cpu_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
	"github.com/kubeparts/kubeparts/internal/seedrun"
)

// Pods come and go under each policy of the topology manager: no CPU is allocated
// twice, the pool is the rest, freed CPUs return to it, a second manager decides the
// same, and the next agent reads the same.
func TestAllocationKeepsItsInvariants(t *testing.T) {
	seed := seedrun.Seed(t)
	for _, policy := range []topology.Policy{topology.None, topology.BestEffort, topology.Restricted, topology.SingleNUMANode} {
		for _, machine := range []string{"xeon-2s", "epyc-1s-nps4", "offline-cpus"} {
			t.Run(string(policy)+" on "+machine, func(t *testing.T) { checkInvariants(t, rand.New(rand.NewPCG(seed, 1)), machine, policy) })
		}
	}
}

func checkInvariants(t *testing.T, r *rand.Rand, machine string, policy topology.Policy) {
	var managers []*cpu.Manager
	var joint []*topology.Manager
	opts := variants[r.IntN(len(variants))].opts
	for range 2 {
		m := open(t, machine, cpu.Config{ReservedMilli: 1000, Options: opts})
		j, err := topology.NewManager(topology.Config{Machine: topologytest.Machine(t, machine), Policy: policy, Providers: []topology.Provider{m}})
		require.NoError(t, err)
		managers, joint = append(managers, m), append(joint, j)
	}
	m := managers[0]
	all := topologytest.Machine(t, machine).All()
	live := map[string]*v1.Pod{}
	for i := range 30 {
		if r.IntN(3) == 0 && len(live) > 0 {
			uid := slices.Sorted(maps.Keys(live))[r.IntN(len(live))]
			for _, j := range joint {
				j.Free(types.UID(uid))
			}
			delete(live, uid)
		} else {
			p := pod(fmt.Sprint(i), fmt.Sprint(1+r.IntN(6)), fmt.Sprint(1+r.IntN(3)))
			if r.IntN(2) == 0 {
				p.Spec.InitContainers = []v1.Container{container("init", fmt.Sprint(1+r.IntN(8)))}
			}
			first, second := joint[0].Admit(t.Context(), p), joint[1].Admit(t.Context(), p)
			require.Equal(t, fmt.Sprint(first), fmt.Sprint(second))
			if first == nil {
				live[string(p.UID)] = p
			}
		}
		require.Equal(t, string(m.State().Encode()), string(managers[1].State().Encode()))
		s := m.State()
		used := cpuset.New()
		for uid, containers := range s.Assigned {
			require.Contains(t, live, string(uid))
			pods := cpuset.New()
			for name, set := range containers {
				if name != "init" {
					require.True(t, pods.Intersection(set).IsEmpty(), "containers that run together")
				}
				if name != "init" {
					pods = pods.Union(set)
				}
			}
			apps := pods
			pods = pods.Union(containers["init"])
			require.Equal(t, max(containers["init"].Size(), apps.Size()), pods.Size(), "no more CPUs than the scheduler counts")
			require.True(t, used.Intersection(pods).IsEmpty(), "pods")
			used = used.Union(pods)
		}
		require.True(t, used.IsSubsetOf(m.Allocatable()))
		require.True(t, s.Shared.Equals(all.Difference(used)))
	}
	for uid := range live {
		joint[0].Free(types.UID(uid))
	}
	assert.True(t, m.State().Shared.Equals(all))
	assert.Empty(t, m.State().Assigned)
}
