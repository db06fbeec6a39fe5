package cm_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
)

func TestCgroupParentOfContainers(t *testing.T) { // cm-6, cm-7, cm-21
	p := pod("1-2", burstable)
	for _, tc := range []struct {
		cfg  cm.Config
		want string
	}{
		{cm.Config{}, "/kubepods/burstable/pod1-2"},
		{cm.Config{Driver: cgroups.Systemd}, "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice"},
		{cm.Config{Root: cgroups.Name{"top"}}, "/top/kubepods/burstable/pod1-2"},
		{cm.Config{Root: cgroups.Name{"top"}, Pods: cm.PodCgroups{Flat: true}, Enforce: cm.Enforcement{Keys: []string{"none"}}}, "/top"},
	} {
		assert.Equal(t, tc.want, newNode(t, tc.cfg).CgroupParent(p))
	}
	flat := newNode(t, cm.Config{Pods: cm.PodCgroups{Flat: true}, Enforce: cm.Enforcement{Keys: []string{"none"}}})
	require.NoError(t, flat.Setup(t.Context()))
	require.NoError(t, flat.Ensure(t.Context(), p))
	assert.True(t, flat.Has(p), "cm-20: there is none to miss")
	require.NoError(t, flat.Remove(t.Context(), p.UID))
	require.NoError(t, flat.Resize(t.Context(), p, v1.ResourceCPU, v1.ResourceRequirements{}))
	require.NoError(t, flat.Sync(t.Context()))
	pods, err := flat.Pods()
	require.NoError(t, err)
	assert.Empty(t, pods)
	assert.Equal(t, "/: \n", flat.tree.String(), "cm-21: nothing is made")
}

func TestAConfigurationThatCannotBeIsAnError(t *testing.T) { // cm-25, cm-26
	tree := cgroups.NewTree(cgroups.Facts{Version: 2, Controllers: every})
	for wantErr, cfg := range map[string]cm.Config{
		"Config.Tree is nil":              {},
		`unknown driver "runit"`:          {Tree: tree, Driver: "runit"},
		"bad cgroup name":                 {Tree: tree, Root: cgroups.Name{"a_b"}},
		`unknown key "pod"`:               {Tree: tree, Enforce: cm.Enforcement{Keys: []string{"pod"}}},
		`"none" excludes other keys`:      {Tree: tree, Enforce: cm.Enforcement{Keys: []string{"none", "pods"}}},
		`"pods" requires cgroups of pods`: {Tree: tree, Pods: cm.PodCgroups{Flat: true}},
		`"kube-reserved" requires Config.Enforce.KubeReservedCgroup`: {Tree: tree, Enforce: cm.Enforcement{Keys: []string{"kube-reserved"}}},
		`"/system.slice/sshd.service" is not a cgroup that`:          {Tree: tree, Driver: cgroups.Systemd, Enforce: cm.Enforcement{SystemReservedCgroup: "/system.slice/sshd.service"}},
		`"/" is not a cgroup that can be limited`:                    {Tree: tree, Enforce: cm.Enforcement{KubeReservedCgroup: "/"}},
		"exclude each other":                {Tree: tree, Enforce: cm.Enforcement{Keys: []string{"system-reserved", "system-reserved-compressible"}, SystemReservedCgroup: "/system"}},
		"must be 0 to 100% of memory":       {Tree: tree, Policy: cm.Policy{QOSReserved: map[v1.ResourceName]int64{"cpu": 50}}},
		"Expected capacity >= reservation.": {Tree: tree, Capacity: list("cpu=1"), Reserved: cm.Reserved{Kube: list("cpu=2")}},
	} {
		_, err := cm.New(cfg)
		assert.ErrorContains(t, err, wantErr)
	}
	n := newNode(t, cm.Config{})
	assert.ErrorContains(t, n.Ensure(t.Context(), pod("", burstable)), "has no UID")
	assert.ErrorIs(t, n.Ensure(t.Context(), pod("a/b", burstable)), cgroups.ErrBadName)
}

func TestReservedCgroupsAreLimited(t *testing.T) { // cm-25
	cfg := cm.Config{
		Reserved: cm.Reserved{System: list("cpu=1 memory=1Gi"), Kube: list("cpu=2 memory=1Gi")},
		Enforce:  cm.Enforcement{Keys: []string{"pods", "system-reserved", "kube-reserved-compressible"}, SystemReservedCgroup: "/system", KubeReservedCgroup: "/kube"},
	}
	n := newNode(t, cfg)
	missing := `Failed to enforce System Reserved Cgroup Limits on "/system": cgroup must exist: cgroups: /system: file does not exist`
	assert.EqualError(t, n.Setup(t.Context()), missing)
	assert.Equal(t, []string{"Normal NodeAllocatableEnforced Updated Node Allocatable limit across pods", "Warning FailedNodeAllocatableEnforcement " + missing}, n.events)
	n.tree.Tamper(cgroups.Name{"system"}, cgroups.Resources{})
	n.tree.Tamper(cgroups.Name{"kube"}, cgroups.Resources{})
	n.tree.Fail(func(op string, name cgroups.Name) error {
		if op == "read" && name.String() == "/system" {
			return fs.ErrNotExist // it has not all controllers, as a slice of systemd's own
		}
		return nil
	})
	require.NoError(t, n.Setup(t.Context()))
	n.tree.Fail(nil)
	assert.Equal(t, []string{
		"Normal NodeAllocatableEnforced Updated limits on system reserved cgroup /system",
		"Normal NodeAllocatableEnforced Updated limits on kube reserved cgroup /kube",
	}, n.events[len(n.events)-2:])
	assert.EqualValues(t, 1<<30, *n.has(t, "/system").Memory)
	assert.EqualValues(t, 39, *n.has(t, "/system").CPUWeight)
	assert.EqualValues(t, cgroups.Unlimited, *n.has(t, "/kube").Memory, "compressible: CPU alone")
	assert.EqualValues(t, 79, *n.has(t, "/kube").CPUWeight)
	assert.EqualValues(t, 6<<30, *n.has(t, "/kubepods").Memory, "cm-23")

	busy := newNode(t, cfg)
	busy.tree.Tamper(cgroups.Name{"system"}, cgroups.Resources{})
	busy.tree.Tamper(cgroups.Name{"kube"}, cgroups.Resources{})
	busy.tree.Fail(func(op string, name cgroups.Name) error {
		if op == "apply" && name.String() == "/kube" {
			return errors.New("device or resource busy")
		}
		return nil
	})
	failure := `Failed to enforce Kube Reserved Compressible Cgroup Limits on "/kube": cm: update cgroup: device or resource busy`
	assert.EqualError(t, busy.Setup(t.Context()), failure, "a start error, not a retry")
	assert.Equal(t, "Warning FailedNodeAllocatableEnforcement "+failure, busy.events[len(busy.events)-1])

	raw := newNode(t, cm.Config{Reserved: cfg.Reserved, Enforce: cm.Enforcement{Keys: []string{"none"}}})
	require.NoError(t, raw.Setup(t.Context()))
	assert.EqualValues(t, 8<<30, *raw.has(t, "/kubepods").Memory, "cm-23: without pods the capacity")
}

func TestAFailedEnforcementIsRetriedForever(t *testing.T) { // cm-24
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, cm.Config{})
		begun := time.Now()
		n.tree.Fail(func(op string, name cgroups.Name) error {
			if time.Since(begun) < 150*time.Second && op == "apply" && name.String() == "/kubepods" && n.existed(name) {
				return errors.New("device or resource busy")
			}
			return nil
		})
		require.NoError(t, n.Setup(t.Context()), "a limit alone does not keep the node from starting")
		assert.Equal(t, []string{`Warning FailedNodeAllocatableEnforcement Failed to update Node Allocatable Limits ["kubepods"]: cm: update cgroup: device or resource busy`}, n.events)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- n.Run(ctx) }()
		time.Sleep(241 * time.Second)
		cancel()
		assert.NoError(t, <-done)
		require.Len(t, n.events, 4, "three times in vain, and once it holds it is not done again")
		assert.Equal(t, "Normal NodeAllocatableEnforced Updated Node Allocatable limit across pods", n.events[3])
	})
}

// existed is for faults, which run with the tree locked.
func (n *node) existed(name cgroups.Name) bool {
	return slices.Contains(n.ops, "create "+name.String())
}

func TestAnExistingCgroupIsCorrected(t *testing.T) { // cm-12, nq-10
	group := cgroups.Name{"kubepods", "podg-1"}
	other := cgroups.Resources{Pids: new(int64(5)), Memory: new(int64(32 << 20))}
	n := newNode(t, cm.Config{})
	require.NoError(t, n.Setup(t.Context()))
	n.tree.Tamper(group, other) // an earlier agent's
	require.NoError(t, n.Ensure(t.Context(), pod("g-1", guaranteed)))
	assert.EqualValues(t, -1, *n.has(t, "/kubepods/podg-1").Pids)
	assert.EqualValues(t, 64<<20, *n.has(t, "/kubepods/podg-1").Memory)
	n.fixed = nil
	require.NoError(t, n.Sync(t.Context()))
	assert.Empty(t, n.fixed, "correct values are not rewritten")
	n.tree.Tamper(group, other)
	n.tree.Tamper(cgroups.Name{"kubepods", "besteffort"}, cgroups.Resources{CPUWeight: new(int64(500))})
	require.NoError(t, n.Sync(t.Context()))
	assert.Equal(t, []string{"/kubepods/podg-1 [memory is 33554432, not 67108864 pids is 5, not -1]"}, n.fixed)
	assert.EqualValues(t, 1, *n.has(t, "/kubepods/besteffort").CPUWeight, "cm-18: each minute")

	// One that has vanished is left to the pod's next sync.
	require.NoError(t, n.tree.Remove(t.Context(), group))
	require.NoError(t, n.Sync(t.Context()))
	assert.False(t, n.there("/kubepods/podg-1"))
	require.NoError(t, n.Ensure(t.Context(), pod("g-1", guaranteed)))
	assert.EqualValues(t, 64<<20, *n.has(t, "/kubepods/podg-1").Memory)
}

// The values of a cgroup are read every five minutes, whether its pod is synced or not.
func TestACgroupIsCheckedEveryFiveMinutes(t *testing.T) { // nq-10
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, cm.Config{})
		require.NoError(t, n.Setup(t.Context()))
		reads := map[string]int{}
		n.tree.Fail(func(op string, name cgroups.Name) error {
			if op == "read" {
				reads[name.String()]++
			}
			return nil
		})
		synced, idle := pod("g-1", guaranteed), pod("g-2", guaranteed)
		require.NoError(t, n.Ensure(t.Context(), synced))
		require.NoError(t, n.Ensure(t.Context(), idle))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- n.Run(ctx) }()
		time.Sleep(30 * time.Second)
		for range 20 {
			require.NoError(t, n.Ensure(t.Context(), synced))
			time.Sleep(time.Minute)
		}
		cancel()
		require.NoError(t, <-done)
		assert.Equal(t, 1+4, reads["/kubepods/podg-1"])
		assert.Equal(t, 1+4, reads["/kubepods/podg-2"])

		// One that has vanished is created again at once.
		require.NoError(t, n.tree.Remove(t.Context(), cgroups.Name{"kubepods", "podg-1"}))
		require.NoError(t, n.Ensure(t.Context(), synced))
		assert.True(t, n.there("/kubepods/podg-1"))
	})
}

// An interrupted resize: the pod's spec has less than one of its containers.
func TestLimitsAreNotLoweredBelowTheContainers(t *testing.T) { // cm-43
	n := newNode(t, cm.Config{})
	require.NoError(t, n.Setup(t.Context()))
	group := cgroups.Name{"kubepods", "podg-1"}
	n.tree.Tamper(group, cgroups.Resources{Memory: new(int64(128 << 20)), CPUQuota: new(int64(200_000)), Pids: new(int64(5))})
	n.tree.Tamper(group.Child("c"), cgroups.Resources{Memory: new(int64(128 << 20)), CPUQuota: new(int64(20_000))})
	require.NoError(t, n.Ensure(t.Context(), pod("g-1", guaranteed)))
	has := n.has(t, "/kubepods/podg-1")
	assert.EqualValues(t, 128<<20, *has.Memory, "the container has more than the spec")
	assert.EqualValues(t, 50_000, *has.CPUQuota, "the container has less")
	assert.EqualValues(t, -1, *has.Pids)
}

func TestALimitThatCannotBeSetFailsTheStart(t *testing.T) { // cm-10, nq-10
	n := newNode(t, cm.Config{})
	require.NoError(t, n.Setup(t.Context()))
	n.tree.Tamper(cgroups.Name{"kubepods", "podg-1"}, cgroups.Resources{}) // made, but not set
	n.tree.Fail(func(op string, name cgroups.Name) error {
		if op == "apply" {
			return fmt.Errorf("set limits: %w", cgroups.ErrReadOnly)
		}
		return nil
	})
	err := n.Ensure(t.Context(), pod("g-1", guaranteed))
	assert.ErrorIs(t, err, cgroups.ErrReadOnly, "a read-only cgroupfs is named")
	assert.ErrorIs(t, n.Ensure(t.Context(), pod("g-2", guaranteed)), cgroups.ErrReadOnly, "one that can't be made is no cgroup")
	n = newNode(t, cm.Config{})
	n.tree.Fail(func(string, cgroups.Name) error { return cgroups.ErrReadOnly })
	assert.ErrorIs(t, n.Setup(t.Context()), cgroups.ErrReadOnly)
}

func TestMissingControllersAreNotFatal(t *testing.T) { // cm-9
	n := newNode(t, cm.Config{Tree: cgroups.NewTree(cgroups.Facts{Version: 2, Controllers: []string{"pids"}}), Policy: cm.Policy{PodPids: 9}})
	require.NoError(t, n.Setup(t.Context()))
	require.NoError(t, n.Ensure(t.Context(), pod("g-1", guaranteed)))
	assert.Equal(t, "pids 9", n.has(t, "/kubepods/podg-1").String())
	require.NoError(t, n.Sync(t.Context()))
	assert.Empty(t, n.fixed)
}

func TestAClassLimitBelowUseIsTriedAtUse(t *testing.T) { // cm-19
	n := newNode(t, cm.Config{
		Tree:     cgroups.NewTree(cgroups.Facts{Version: 1, Controllers: every}),
		Policy:   cm.Policy{QOSReserved: map[v1.ResourceName]int64{"memory": 100}},
		Capacity: list("cpu=4 memory=1Gi"),
	})
	require.NoError(t, n.Setup(t.Context()))
	n.tree.Use(cgroups.Name{"kubepods", "burstable"}, cgroups.Stats{Memory: &cgroups.MemoryStats{Usage: 980 << 20}})
	require.NoError(t, n.Ensure(t.Context(), pod("g-1", guaranteed)))
	assert.EqualValues(t, 980<<20, *n.has(t, "/kubepods/burstable").Memory, "960Mi would be busy")
	assert.EqualValues(t, 960<<20, *n.has(t, "/kubepods/besteffort").Memory)
}

func TestAResizeOfAPodsCgroup(t *testing.T) { // cm-43
	n := newNode(t, cm.Config{})
	require.NoError(t, n.Setup(t.Context()))
	p := pod("b-1", "cpu=250m memory=32Mi / cpu=500m memory=64Mi")
	require.NoError(t, n.Ensure(t.Context(), p))
	after := v1.ResourceRequirements{Requests: list("cpu=500m memory=64Mi"), Limits: list("cpu=1 memory=128Mi")}
	require.NoError(t, n.Resize(t.Context(), p, v1.ResourceCPU, after))
	has := n.has(t, "/kubepods/burstable/podb-1")
	assert.EqualValues(t, 100_000, *has.CPUQuota)
	assert.EqualValues(t, 20, *has.CPUWeight)
	assert.EqualValues(t, 64<<20, *has.Memory, "the other resource stays")
	assert.EqualValues(t, 20, *n.has(t, "/kubepods/burstable").CPUWeight, "cm-18: of the class, too")
	require.NoError(t, n.Resize(t.Context(), p, v1.ResourceMemory, after))
	require.NoError(t, n.Ensure(t.Context(), p), "the pod passed may be older than the resize")
	require.NoError(t, n.Sync(t.Context()))
	assert.EqualValues(t, 128<<20, *n.has(t, "/kubepods/burstable/podb-1").Memory)
	assert.Empty(t, n.fixed)

	n.tree.Use(cgroups.Name{"kubepods", "burstable", "podb-1"}, cgroups.Stats{Memory: &cgroups.MemoryStats{Usage: 100 << 20}})
	after.Limits = list("cpu=1 memory=64Mi")
	assert.ErrorContains(t, n.Resize(t.Context(), p, v1.ResourceMemory, after), "104857600 bytes of memory are in use", "cm-43: not below the usage")
	assert.EqualValues(t, 128<<20, *n.has(t, "/kubepods/burstable/podb-1").Memory)
	assert.ErrorContains(t, n.Resize(t.Context(), p, "gpu", after), "only cpu and memory")
	require.NoError(t, n.tree.Remove(t.Context(), cgroups.Name{"kubepods", "burstable", "podb-1"}))
	assert.ErrorIs(t, n.Resize(t.Context(), p, v1.ResourceCPU, after), fs.ErrNotExist, "vanished under us")
}

func TestCgroupsOfPodsThatAreGone(t *testing.T) { // cm-8, cm-44, cm-45, hk-2
	mounted := true
	n := newNode(t, cm.Config{Pods: cm.PodCgroups{
		Ledger: &ledger{"old-1": true}, HasVolumes: func(uid types.UID) bool { return mounted && uid == "v-1" },
	}})
	require.NoError(t, n.Setup(t.Context()))
	for _, p := range []*v1.Pod{pod("g-1", guaranteed), pod("b-1", burstable), pod("e-1", besteffort), pod("v-1", burstable)} {
		require.NoError(t, n.Ensure(t.Context(), p))
	}
	for _, other := range []string{"podpodx", "system"} { // of no pod
		n.tree.Tamper(cgroups.Name{"kubepods", other}, cgroups.Resources{})
	}
	n.tree.Tamper(cgroups.Name{"kubepods", "burstable", "podold-1"}, cgroups.Resources{}) // of an earlier agent
	n.tree.Run(cgroups.Name{"kubepods", "besteffort", "pode-1", "c"}, true, 99)
	ensure := sync.OnceValue(func() error { return n.Ensure(t.Context(), pod("new-1", burstable)) })
	keep := func(uid types.UID) bool {
		assert.NoError(t, ensure()) // hk-2: it is added after the cgroups were listed
		return uid == "g-1"
	}
	err := n.Retain(t.Context(), keep)
	assert.ErrorContains(t, err, "processes [99] do not end", "cm-45: the cgroup stays")
	assert.True(t, n.there("/kubepods/besteffort/pode-1"))
	assert.True(t, n.there("/kubepods/podg-1"))
	assert.True(t, n.there("/kubepods/podpodx"), "cm-8")
	assert.True(t, n.there("/kubepods/burstable/podnew-1"), "hk-2")
	assert.False(t, n.there("/kubepods/burstable/podb-1"))
	assert.False(t, n.there("/kubepods/burstable/podold-1"))
	assert.EqualValues(t, 1, *n.has(t, "/kubepods/burstable/podv-1").CPUWeight, "cm-44: its volumes are there")
	require.NoError(t, n.Sync(t.Context()))
	assert.EqualValues(t, 1, *n.has(t, "/kubepods/burstable/podv-1").CPUWeight)

	n.tree.Run(cgroups.Name{"kubepods", "besteffort", "pode-1", "c"}, false)
	mounted = false
	require.NoError(t, n.Retain(t.Context(), func(uid types.UID) bool { return keep(uid) || uid == "new-1" }), "the next pass")
	assert.False(t, n.there("/kubepods/besteffort/pode-1"))
	assert.False(t, n.there("/kubepods/burstable/podv-1"))
	assert.EqualValues(t, 10, *n.has(t, "/kubepods/burstable").CPUWeight, "new-1 alone is left")
}

func TestKillsOfPodsAreCounted(t *testing.T) { // oom-1, oom-3
	for version, want := range map[int]uint64{1: 7, 2: 5} {
		tree := cgroups.NewTree(cgroups.Facts{Version: version, Controllers: every})
		m, err := cm.New(cm.Config{Tree: tree, Capacity: list("cpu=4 memory=1Gi")})
		require.NoError(t, err)
		require.NoError(t, m.Setup(t.Context()))
		p := pod("b-1", burstable)
		require.NoError(t, m.Ensure(t.Context(), p))
		require.NoError(t, m.Ensure(t.Context(), pod("g-1", guaranteed)))
		name := m.PodName(p)
		tree.Use(name, cgroups.Stats{Memory: &cgroups.MemoryStats{OOMKills: 5}})
		tree.Use(name.Child("c1"), cgroups.Stats{Memory: &cgroups.MemoryStats{OOMKills: 2}})
		kills, err := m.OOMKills()
		require.NoError(t, err)
		assert.Equal(t, map[string]uint64{"/kubepods/burstable/podb-1": want, "/kubepods/podg-1": 0}, kills, "v2 counts those below, v1 does not")
		require.NoError(t, m.Remove(t.Context(), "b-1"))
		kills, err = m.OOMKills()
		require.NoError(t, err)
		assert.Len(t, kills, 1)
	}
}

// Many pods come and go concurrently; in the end the classes match the remaining pods.
func TestPodsComeAndGoConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := cgroups.NewTree(cgroups.Facts{Version: 2, Controllers: every})
		m, err := cm.New(cm.Config{Tree: tree, Capacity: list("cpu=4")})
		require.NoError(t, err)
		require.NoError(t, m.Setup(t.Context()))
		done := make(chan error)
		for i := range 100 {
			go func() {
				p := pod(fmt.Sprintf("p-%d", i), burstable)
				err := m.Ensure(t.Context(), p)
				if i > 0 {
					err = errors.Join(err, m.Remove(t.Context(), p.UID))
				}
				done <- err
			}()
		}
		for range 100 {
			assert.NoError(t, <-done)
		}
		require.NoError(t, m.Sync(t.Context()))
		class, err := tree.Read(cgroups.Name{"kubepods", "burstable"})
		require.NoError(t, err)
		assert.EqualValues(t, 10, *class.CPUWeight)
	})
}

// Memory that an earlier agent protected is reclaimable again after the policy has
// changed.
func TestMemoryIsNoLongerProtectedOnceThePolicyIsOff(t *testing.T) {
	pods := []*v1.Pod{pod("g-1", guaranteed), pod("b-1", burstable), pod("e-1", besteffort)}
	show := func(r cgroups.Resources, err error) string {
		require.NoError(t, err)
		return fmt.Sprint(*r.MemoryMin>>20, " ", *r.MemoryLow>>20)
	}
	for _, earlier := range []cgroups.Reservation{cgroups.ReserveAll, cgroups.ReserveTiered} {
		for later, want := range map[cgroups.Reservation][]string{
			cgroups.ReserveNone: {"0 0", "0 0", "0 0", "0 0"}, cgroups.ReserveAll: {"96 0", "32 0", "64 0", "32 0"}, cgroups.ReserveTiered: {"96 32", "0 32", "64 0", "0 32"},
		} {
			tree, _ := restarted(t, cgroups.Facts{Version: 2, Controllers: every}, cm.Policy{Reserve: earlier}, pods...)
			m, err := cm.New(cm.Config{Tree: tree, Policy: cm.Policy{Reserve: later}, Capacity: list("cpu=4 memory=1Gi")})
			require.NoError(t, err)
			require.NoError(t, m.Setup(t.Context()))
			for _, p := range pods {
				require.NoError(t, m.Ensure(t.Context(), p))
			}
			require.NoError(t, m.Sync(t.Context()))
			assert.Equal(t, want, []string{
				show(tree.Read(m.PodsRoot())), show(tree.Read(tree.class)), show(tree.Read(m.PodName(pods[0]))), show(tree.Read(m.PodName(pods[1]))),
			}, "%d, then %d", earlier, later)
		}
	}
}

func TestNothingOfCgroupV2IsWrittenToV1(t *testing.T) {
	tree, m := restarted(t, cgroups.Facts{Version: 1, Controllers: every}, cm.Policy{}, pod("b-1", burstable))
	tree.class = m.PodsRoot()
	require.NoError(t, m.Ensure(t.Context(), pod("b-1", burstable)))
	require.NoError(t, m.Sync(t.Context()))
	_, wrote := tree.least()
	assert.False(t, wrote, "kubepods has nothing but its limits")
}

func TestPodsWithExclusiveCPUsHaveNoQuota(t *testing.T) {
	n := newNode(t, cm.Config{Policy: cm.Policy{ExclusiveCPUs: func(p *v1.Pod) bool { return p.UID == "own" }}})
	require.NoError(t, n.Setup(t.Context()))
	// An earlier agent gave it a quota.
	n.tree.Tamper(cgroups.Name{"kubepods", "podown"}, cgroups.Resources{CPUQuota: new(int64(200_000))})
	whole := "cpu=2 memory=64Mi / cpu=2 memory=64Mi"
	for uid, want := range map[string]int64{"own": -1, "shared": 200_000} {
		p := pod(uid, whole)
		require.NoError(t, n.Ensure(t.Context(), p))
		assert.EqualValues(t, want, *n.has(t, "/kubepods/pod"+uid).CPUQuota, uid)
		after := v1.ResourceRequirements{Requests: list("cpu=2 memory=128Mi"), Limits: list("cpu=2 memory=128Mi")}
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			require.NoError(t, n.Resize(t.Context(), p, name, after))
		}
		require.NoError(t, n.Sync(t.Context()))
		has := n.has(t, "/kubepods/pod"+uid)
		assert.EqualValues(t, want, *has.CPUQuota, uid)
		assert.EqualValues(t, 79, *has.CPUWeight, uid)
	}
}
