package cm_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// A recorder is a tree that keeps the CPU value of a class after each write.
type recorder struct {
	*cgroups.Tree
	class cgroups.Name

	mu     sync.Mutex
	values []int64
}

func (r *recorder) Apply(ctx context.Context, name cgroups.Name, res cgroups.Resources) error {
	err := r.Tree.Apply(ctx, name, res)
	if name.String() == r.class.String() {
		has, _ := r.Tree.Read(name)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.values = append(r.values, cpuOf(has))
	}
	return err
}

func (r *recorder) least() (int64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.values) == 0 {
		return 0, false
	}
	least := r.values[0]
	for _, v := range r.values {
		least = min(least, v)
	}
	return least, true
}

func cpuOf(r cgroups.Resources) int64 {
	if r.CPUWeight != nil {
		return *r.CPUWeight
	}
	return *r.CPUShares
}

// restarted returns a tree with the cgroups of the pods as an earlier agent left
// them, and the manager of the next agent, set up.
func restarted(t *testing.T, facts cgroups.Facts, policy cm.Policy, pods ...*v1.Pod) (*recorder, *cm.Manager) {
	t.Helper()
	tree := &recorder{Tree: cgroups.NewTree(facts), class: cgroups.Name{"kubepods", "burstable"}}
	recorded := &ledger{} // on disk
	agent := func() *cm.Manager {
		m, err := cm.New(cm.Config{Tree: tree, Pods: cm.PodCgroups{Ledger: recorded, HasVolumes: func(uid types.UID) bool { return uid == "b-4" }}, Policy: policy, Capacity: list("cpu=64 memory=64Gi")})
		require.NoError(t, err)
		require.NoError(t, m.Setup(t.Context()))
		return m
	}
	earlier := agent()
	for _, p := range pods {
		require.NoError(t, earlier.Ensure(t.Context(), p))
	}
	require.NoError(t, earlier.Sync(t.Context()))
	tree.values = nil
	return tree, agent()
}

func TestClassesAreNotComputedFromTheFirstPodsAfterARestart(t *testing.T) {
	for _, facts := range []cgroups.Facts{
		{Version: 1, Controllers: every},
		{Version: 2, Controllers: every},
	} {
		for _, request := range []string{"250m", "1", "7m", "1m", "3333m"} {
			t.Run(fmt.Sprint(facts.Version, " ", request), func(t *testing.T) {
				var pods []*v1.Pod
				for i := range 50 {
					pods = append(pods, pod(fmt.Sprintf("b-%02d", i), "cpu="+request+" memory=1Mi /"))
				}
				tree, m := restarted(t, facts, cm.Policy{}, pods...)
				was := cpuOf(must(tree.Read(tree.class)))

				// A new pod comes first, and then those that run, in any order; passes happen
				// in between.
				require.NoError(t, m.Ensure(t.Context(), pod("new", "cpu=10m /")))
				for i := range pods {
					require.NoError(t, m.Ensure(t.Context(), pods[(i*7)%50]))
					if i%10 == 0 {
						require.NoError(t, m.Sync(t.Context()))
					}
				}
				least, wrote := tree.least()
				require.True(t, wrote)
				assert.GreaterOrEqual(t, least, was)

				// Once all pods are ensured, the class has exactly the sum of their
				// requests.
				require.NoError(t, m.Remove(t.Context(), "new"))
				require.NoError(t, m.Sync(t.Context()))
				assert.Equal(t, was, cpuOf(must(tree.Read(tree.class))))
			})
		}
	}
}

func must(r cgroups.Resources, err error) cgroups.Resources {
	if err != nil {
		panic(err)
	}
	return r
}

// A pod of an earlier agent that no source specifies counts until its cgroup has been
// removed, by its worker, by a garbage collection, or by another process.
func TestPodsOfAnEarlierAgentCountUntilTheyAreRemoved(t *testing.T) {
	facts := cgroups.Facts{Version: 1, Controllers: every}
	pods := []*v1.Pod{pod("b-1", "cpu=1 /"), pod("b-2", "cpu=1 /"), pod("b-3", "cpu=1 /"), pod("b-4", "cpu=1 /"), pod("b-5", "cpu=1 /")}
	tree, m := restarted(t, facts, cm.Policy{}, pods...)
	shares := func() int64 {
		require.NoError(t, m.Sync(t.Context()))
		return cpuOf(must(tree.Read(tree.class)))
	}
	assert.GreaterOrEqual(t, shares(), int64(5*1024))
	require.NoError(t, m.Ensure(t.Context(), pods[0]))
	require.NoError(t, m.Remove(t.Context(), "b-2"))
	assert.GreaterOrEqual(t, shares(), int64(4*1024))
	assert.Less(t, shares(), int64(5*1024))
	keep := func(uid types.UID) bool { return uid != "b-3" && uid != "b-4" }
	require.NoError(t, m.Retain(t.Context(), keep))
	assert.GreaterOrEqual(t, shares(), int64(2*1024))
	assert.Less(t, shares(), int64(3*1024), "a pod that has only volumes left no longer counts")
	require.NoError(t, tree.Remove(t.Context(), cgroups.Name{"kubepods", "burstable", "podb-5"}))
	assert.EqualValues(t, 1024, shares())
}

// A pod that was not resized, but whose requests exceed its cgroup, raises its class
// at once.
func TestAPodThatRequestsMoreThanItsCgroupHasRaisesItsClass(t *testing.T) {
	tree, m := restarted(t, cgroups.Facts{Version: 1, Controllers: every}, cm.Policy{}, pod("b-1", "cpu=100m /"))
	require.NoError(t, m.Ensure(t.Context(), pod("b-1", "cpu=2 /")))
	assert.EqualValues(t, 2048, cpuOf(must(tree.Read(tree.class))))
}

func TestProtectedMemoryOfTheClassesIsKeptAtARestart(t *testing.T) {
	pods := []*v1.Pod{pod("g-1", guaranteed), pod("g-2", guaranteed), pod("b-1", burstable), pod("b-2", burstable)}
	for reserve, want := range map[cgroups.Reservation]string{
		cgroups.ReserveAll:    "min 201326592 low 0; min 67108864 low 0",
		cgroups.ReserveTiered: "min 201326592 low 67108864; min 0 low 67108864",
	} {
		tree, m := restarted(t, cgroups.Facts{Version: 2, Controllers: every}, cm.Policy{Reserve: reserve}, pods...)
		require.NoError(t, m.Ensure(t.Context(), pod("e-1", besteffort)))
		require.NoError(t, m.Sync(t.Context()))
		all, class := must(tree.Read(cgroups.Name{"kubepods"})), must(tree.Read(tree.class))
		guaranteed, burstable := m.ProtectedMemory()
		if reserve == cgroups.ReserveTiered {
			assert.EqualValues(t, []int64{134217728, 67108864}, []int64{guaranteed, burstable})
		} else {
			assert.Zero(t, guaranteed+burstable)
		}
		assert.Equal(t, want, fmt.Sprintf("min %d low %d; min %d low %d", *all.MemoryMin, *all.MemoryLow, *class.MemoryMin, *class.MemoryLow))
	}
}

func TestACgroupThatCannotBeReadDoesNotKeepTheNodeFromStarting(t *testing.T) {
	tree, _ := restarted(t, cgroups.Facts{Version: 2, Controllers: every}, cm.Policy{}, pod("b-1", burstable), pod("b-2", burstable))
	tree.Fail(func(op string, name cgroups.Name) error {
		if op == "read" && name.PodUID() == "b-1" {
			return errors.New("input/output error")
		}
		return nil
	})
	m, err := cm.New(cm.Config{Tree: tree, Capacity: list("cpu=64")})
	require.NoError(t, err)
	require.NoError(t, m.Setup(t.Context()))
	require.NoError(t, m.Sync(t.Context()))
	assert.GreaterOrEqual(t, cpuOf(must(tree.Read(tree.class))), int64(10), "b-2 counts")
}
