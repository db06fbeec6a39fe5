package cm_test

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/runtime"
)

// list parses "cpu=1 memory=1Gi".
func list(text string) v1.ResourceList {
	out := v1.ResourceList{}
	for _, pair := range strings.Fields(text) {
		name, value, _ := strings.Cut(pair, "=")
		out[v1.ResourceName(name)] = resource.MustParse(value)
	}
	return out
}

// pod makes a pod of containers "requests / limits".
func pod(uid string, containers ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: "default", UID: types.UID(uid)}}
	for i, c := range containers {
		requests, limits, _ := strings.Cut(c, "/")
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{
			Name: fmt.Sprint("c", i), Resources: v1.ResourceRequirements{Requests: list(requests), Limits: list(limits)},
		})
	}
	return p
}

const (
	guaranteed = "cpu=500m memory=64Mi / cpu=500m memory=64Mi"
	burstable  = "cpu=250m memory=32Mi /"
	besteffort = ""
)

func TestSettingsOfAPodsCgroup(t *testing.T) {
	none := "cpu quota -1, cpu period 100000, memory -1, pids -1"
	for _, tc := range []struct {
		rule   string
		policy cm.Policy
		pod    *v1.Pod
		want   string
	}{
		{"cm-13: guaranteed", cm.Policy{}, pod("a", guaranteed), "cpu shares 512, cpu quota 50000, cpu period 100000, memory 67108864, pids -1"},
		{"cm-13: burstable", cm.Policy{}, pod("a", burstable), "cpu shares 256, " + none},
		{"cm-13: besteffort", cm.Policy{}, pod("a", besteffort), "cpu shares 2, " + none},
		{"cm-13: a quota if every container has a limit", cm.Policy{}, pod("a", "cpu=100m / cpu=200m", " / cpu=300m memory=1Mi"), "cpu shares 102, cpu quota 50000, cpu period 100000, memory -1, pids -1"},
		{"cm-13: none if one has none", cm.Policy{}, pod("a", "cpu=100m / cpu=200m", burstable), "cpu shares 358, " + none},
		{"cm-14: all containers", cm.Policy{}, pod("a", guaranteed, guaranteed), "cpu shares 1024, cpu quota 100000, cpu period 100000, memory 134217728, pids -1"},
		{"cm-15: no quota", cm.Policy{NoCPUQuota: true}, pod("a", guaranteed), "cpu shares 512, cpu quota -1, cpu period 100000, memory 67108864, pids -1"},
		{"cm-2: another period", cm.Policy{CPUPeriod: 10 * time.Millisecond}, pod("a", guaranteed), "cpu shares 512, cpu quota 5000, cpu period 10000, memory 67108864, pids -1"},
		{"cm-16: pids", cm.Policy{PodPids: 1024}, pod("a", besteffort), "cpu shares 2, cpu quota -1, cpu period 100000, memory -1, pids 1024"},
		{"cm-17: huge pages that are requested, and no others", cm.Policy{HugePageSizes: []int64{2 << 20, 1 << 30}}, pod("a", "hugepages-2Mi=4Mi cpu=1 / hugepages-2Mi=4Mi hugepages-4Ki=8Ki"),
			"cpu shares 1024, " + none + ", hugepages 2MB 4194304, hugepages 1GB 0"},
		{"cm-38: nothing protected by default", cm.Policy{Reserve: cgroups.ReserveNone}, pod("a", guaranteed), "cpu shares 512, cpu quota 50000, cpu period 100000, memory 67108864, pids -1"},
		{"cm-38: all", cm.Policy{Reserve: cgroups.ReserveAll}, pod("a", burstable), "cpu shares 256, cpu quota -1, cpu period 100000, memory -1, memory min 33554432, pids -1"},
		{"cm-39: tiered, guaranteed", cm.Policy{Reserve: cgroups.ReserveTiered}, pod("a", guaranteed), "cpu shares 512, cpu quota 50000, cpu period 100000, memory 67108864, memory min 67108864, pids -1"},
		{"cm-39: tiered, burstable", cm.Policy{Reserve: cgroups.ReserveTiered}, pod("a", burstable), "cpu shares 256, cpu quota -1, cpu period 100000, memory -1, memory low 33554432, pids -1"},
		{"more than any machine has", cm.Policy{}, pod("a", "cpu=9E memory=9E /"), "cpu shares 262144, " + none},
	} {
		t.Run(tc.rule, func(t *testing.T) { assert.Equal(t, tc.want, short(tc.policy.PodResources(tc.pod))) })
	}
	t.Run("cm-14: init containers, sidecars and overhead", func(t *testing.T) {
		p := pod("a", "cpu=100m / cpu=100m")
		always := v1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = []v1.Container{
			{Name: "init", Resources: v1.ResourceRequirements{Requests: list("cpu=1"), Limits: list("cpu=1")}},
			{Name: "side", RestartPolicy: &always, Resources: v1.ResourceRequirements{Requests: list("cpu=50m"), Limits: list("cpu=50m")}},
		}
		p.Spec.Overhead = list("cpu=10m")
		assert.Equal(t, "cpu shares 1034, cpu quota 101000, cpu period 100000, memory -1, pids -1", short(cm.Policy{}.PodResources(p)))
	})
	t.Run("cm-14: the pod as a whole", func(t *testing.T) {
		p := pod("a", burstable)
		p.Spec.Resources = &v1.ResourceRequirements{Requests: list("cpu=1 memory=1Gi"), Limits: list("cpu=2 memory=2Gi")}
		assert.Equal(t, "cpu shares 1024, cpu quota 200000, cpu period 100000, memory 2147483648, pids -1", short(cm.Policy{}.PodResources(p)))
	})
}

// Containers without a limit of their own are throttled with their pod.
func TestPodsAreThrottled(t *testing.T) { // cm-38
	whole := func(requests, limits string) *v1.Pod {
		p := pod("a", "memory=64Mi / memory=128Mi", besteffort)
		p.Spec.Resources = &v1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}
		return p
	}
	for name, tc := range map[string]struct {
		policy cm.Policy
		pod    *v1.Pod
		want   int64
	}{
		"half between request and limit":   {cm.Policy{ThrottlingFactor: 0.5}, whole("memory=100Mi", "memory=200Mi"), 150 << 20},
		"above the requests of containers": {cm.Policy{ThrottlingFactor: 0.5}, whole("", "memory=192Mi"), 128 << 20},
		"whole pages":                      {cm.Policy{ThrottlingFactor: 0.9, PageSize: 65536}, whole("memory=100Mi", "memory=150000001"), 145424384},
		"no factor":                        {cm.Policy{}, whole("memory=100Mi", "memory=200Mi"), -1},
		"request and limit are the same":   {cm.Policy{ThrottlingFactor: 0.5}, whole("cpu=1 memory=100Mi", "cpu=1 memory=100Mi"), -1},
		"no limit of memory":               {cm.Policy{ThrottlingFactor: 0.5}, whole("memory=100Mi", "cpu=1"), -1},
		"no resources at pod level":        {cm.Policy{ThrottlingFactor: 0.5}, pod("a", "memory=64Mi / memory=128Mi"), -1},
	} {
		assert.EqualValues(t, tc.want, *tc.policy.PodResources(tc.pod).MemoryHigh, name)
	}

	n := newNode(t, cm.Config{Policy: cm.Policy{ThrottlingFactor: 0.5}})
	require.NoError(t, n.Setup(t.Context()))
	p := whole("memory=100Mi", "memory=200Mi")
	require.NoError(t, n.Ensure(t.Context(), p))
	p.Spec.Resources.Limits = list("memory=300Mi")
	require.NoError(t, n.Resize(t.Context(), p, v1.ResourceMemory, *p.Spec.Resources))
	assert.EqualValues(t, 200<<20, *n.has(t, "/kubepods/burstable/poda").MemoryHigh, "after a resize")
}

// Pods have limits of their own, within those of the machine.
func TestHugePagesOfAllPodsAreNotLimited(t *testing.T) { // cm-17
	n := newNode(t, cm.Config{Policy: cm.Policy{HugePageSizes: []int64{2 << 20, 1 << 30}}, Capacity: list("cpu=4 memory=8Gi hugepages-2Mi=32Mi")})
	require.NoError(t, n.Setup(t.Context()))
	assert.Equal(t, map[int64]int64{2 << 20: 1 << 62, 1 << 30: 1 << 62}, n.has(t, "/kubepods").HugePages)
}

func TestMemoryOfDaemonsIsProtected(t *testing.T) { // cm-38
	for _, on := range []bool{true, false} {
		n := newNode(t, cm.Config{
			Policy:   cm.Policy{MemoryQoS: on},
			Reserved: cm.Reserved{System: list("cpu=1 memory=1Gi"), Kube: list("cpu=1 memory=1Gi")},
			Enforce:  cm.Enforcement{Keys: []string{"pods", "system-reserved", "kube-reserved-compressible"}, SystemReservedCgroup: "/system", KubeReservedCgroup: "/kube"},
		})
		n.tree.Tamper(cgroups.Name{"system"}, cgroups.Resources{MemoryMin: new(int64(4096))})
		n.tree.Tamper(cgroups.Name{"kube"}, cgroups.Resources{})
		require.NoError(t, n.Setup(t.Context()))
		want := int64(4096) // of an administrator
		if on {
			want = 1 << 30
		}
		assert.Equal(t, want, *n.has(t, "/system").MemoryMin, on)
		assert.Zero(t, *n.has(t, "/kube").MemoryMin, "CPU alone")
		assert.Zero(t, *n.has(t, "/kubepods").MemoryMin)
	}
}

func TestSettingsOfTheClasses(t *testing.T) {
	demand := cm.ClassDemand{Guaranteed: cm.PodRequest{MilliCPU: 1000, Memory: 1000 << 20}, Burstable: cm.PodRequest{MilliCPU: 500, Memory: 500 << 20}}
	node := list("memory=4000Mi")
	for _, tc := range []struct {
		rule                            string
		policy                          cm.Policy
		kubepods, burstable, besteffort string
	}{
		{"cm-18", cm.Policy{}, "", "cpu shares 512", "cpu shares 2"},
		{"cm-17", cm.Policy{HugePageSizes: []int64{2 << 20}}, "", "cpu shares 512, hugepages 2MB 4611686018427387904", "cpu shares 2, hugepages 2MB 4611686018427387904"},
		{"cm-19: half", cm.Policy{QOSReserved: map[v1.ResourceName]int64{"memory": 50}}, "", "cpu shares 512, memory 3670016000", "cpu shares 2, memory 3407872000"},
		{"cm-19: all", cm.Policy{QOSReserved: map[v1.ResourceName]int64{"memory": 100}}, "", "cpu shares 512, memory 3145728000", "cpu shares 2, memory 2621440000"},
		{"cm-38", cm.Policy{Reserve: cgroups.ReserveAll}, "memory min 1572864000", "cpu shares 512, memory min 524288000", "cpu shares 2"},
		{"cm-39", cm.Policy{Reserve: cgroups.ReserveTiered}, "memory min 1572864000, memory low 524288000", "cpu shares 512, memory low 524288000", "cpu shares 2"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			r := tc.policy.QOSLimits(demand, node)
			assert.Equal(t, []string{tc.kubepods, tc.burstable, tc.besteffort}, []string{short(r.Kubepods), short(r.Burstable), short(r.BestEffort)})
		})
	}
}

// short formats r without the unprotected memory, which is always set.
func short(r cgroups.Resources) string {
	text := ", " + r.String()
	for _, none := range []string{", memory min 0", ", memory low 0", ", memory high -1"} {
		text = strings.Replace(text, none, "", 1)
	}
	return strings.TrimPrefix(text, ", ")
}

// show lists quantities in order.
func show(l v1.ResourceList) string {
	var out []string
	for _, name := range []v1.ResourceName{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "pid"} {
		if q, ok := l[name]; ok {
			out = append(out, fmt.Sprintf("%s=%s", name, q.String()))
		}
	}
	return strings.Join(out, " ")
}

func TestAllocatable(t *testing.T) {
	capacity := list("cpu=4 memory=8Gi ephemeral-storage=100Gi hugepages-2Mi=1Gi pid=32768")
	for _, tc := range []struct {
		rule     string
		reserved cm.Reserved
		want     string
	}{
		{"cm-22: huge pages are no memory", cm.Reserved{}, "cpu=4 memory=7Gi ephemeral-storage=100Gi hugepages-2Mi=1Gi"},
		{"cm-22: reservations", cm.Reserved{System: list("cpu=100m memory=1Gi"), Kube: list("cpu=400m ephemeral-storage=10Gi"), Eviction: list("memory=100Mi")},
			"cpu=3500m memory=6044Mi ephemeral-storage=90Gi hugepages-2Mi=1Gi"},
		{"cm-22: not below zero", cm.Reserved{System: list("memory=9Gi")}, "cpu=4 memory=0 ephemeral-storage=100Gi hugepages-2Mi=1Gi"},
		{"cm-28: pids are called pid", cm.Reserved{System: list("pid=1000")}, "cpu=4 memory=7Gi ephemeral-storage=100Gi hugepages-2Mi=1Gi"},
	} {
		assert.Equal(t, tc.want, show(cm.Allocatable(capacity, tc.reserved)), tc.rule)
	}
	assert.Equal(t, "cpu shares 4096, memory 8589934592, pids 32768, hugepages 2MB 1073741824", cm.ReservedResources(capacity, false).String(), "cm-23")
	assert.Equal(t, "cpu shares 4096", cm.ReservedResources(capacity, true).String(), "cm-25")

	// cm-26, verbatim
	err := cm.CheckReserved(capacity, cm.Reserved{System: list("memory=5Gi"), Kube: list("memory=4Gi cpu=5")})
	assert.ErrorContains(t, err, `invalid Node Allocatable configuration. Resource "memory" has a reservation of 9Gi but capacity of 8Gi. Expected capacity >= reservation.`)
	assert.ErrorContains(t, err, `Resource "cpu" has a reservation of 5 but capacity of 4.`)
	assert.NoError(t, cm.CheckReserved(capacity, cm.Reserved{System: list("memory=8Gi")}))
	assert.NoError(t, cm.CheckReserved(list("cpu=4"), cm.Reserved{Eviction: list("ephemeral-storage=1Mi")}), "the node does not have the resource")
	assert.ErrorContains(t, cm.CheckReserved(list("cpu=4 memory=0"), cm.Reserved{Eviction: list("memory=1Mi")}), "capacity of 0")

	// cm-27
	r, err := cm.Reserved{System: list("cpu=3 memory=1Gi"), Kube: list("cpu=1")}.ReserveCPUs("0-1,8")
	require.NoError(t, err)
	assert.Equal(t, "cpu=3 memory=1Gi", show(r.System))
	assert.Empty(t, r.Kube)
	for _, bad := range []string{"a", "1-", "3-1", "-1", "0-99999999", ","} {
		_, err := cm.Reserved{}.ReserveCPUs(bad)
		assert.Error(t, err, bad)
	}

	// cm-22: hard eviction
	e, err := cm.EvictionReserve(map[string]string{"memory.available": "100Mi", "nodefs.available": "10%", "imagefs.available": "15%"}, capacity)
	require.NoError(t, err)
	assert.Equal(t, "memory=100Mi ephemeral-storage=10Gi", show(e))
	e, err = cm.EvictionReserve(map[string]string{"memory.available": "100%", "nodefs.available": "0%"}, capacity)
	require.NoError(t, err)
	assert.Empty(t, e, "ev-2: these switch a signal off")
	for _, bad := range []string{"x", "101%", "-1", "-1%", "NaN%"} {
		_, err := cm.EvictionReserve(map[string]string{"memory.available": bad}, capacity)
		assert.ErrorContains(t, err, "memory.available", bad)
	}
}

func TestTheMachineIsRead(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	machine := fstest.MapFS{
		"sys/devices/system/cpu/online": file("0-3,6\n"),
		"proc/meminfo":                  file("MemTotal:        8388608 kB\nMemFree: 1 kB\n"),
		"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": file("512\n"),
		"proc/sys/kernel/pid_max":                               file("4194304\n"),
		"proc/sys/kernel/threads-max":                           file("63000\n"),
		"proc/sys/vm/overcommit_memory":                         file("0\n"),
		"proc/sys/vm/panic_on_oom":                              file("0\n"),
		"proc/sys/kernel/panic":                                 file("0\n"),
	}
	got, err := cm.ReadCapacity(machine)
	require.NoError(t, err)
	assert.Equal(t, "cpu=5 memory=8Gi hugepages-2Mi=1Gi pid=63000", show(got))
	none, err := cm.ReadCapacity(fstest.MapFS{})
	require.NoError(t, err)
	assert.Empty(t, none)
	_, err = cm.ReadCapacity(fstest.MapFS{"sys/devices/system/cpu/online": file("many")})
	assert.ErrorContains(t, err, "cpu/online")

	// cm-29
	var set []cm.Tunable
	err = cm.CheckTunables(machine, cm.Tunables(), false, func(t cm.Tunable) error { set = append(set, t); return nil })
	require.NoError(t, err)
	assert.Equal(t, []cm.Tunable{{"vm/overcommit_memory", "1"}, {"kernel/panic", "10"}}, set)
	err = cm.CheckTunables(machine, cm.Tunables(), true, nil)
	assert.ErrorContains(t, err, "invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0")
	err = cm.CheckTunables(machine, cm.Tunables(), false, func(cm.Tunable) error { return fs.ErrPermission })
	assert.ErrorIs(t, err, fs.ErrPermission)

	// cm-30
	header := "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
	assert.False(t, cm.SwapOn([]byte(header)))
	assert.False(t, cm.SwapOn(nil))
	assert.False(t, cm.SwapOn([]byte(header+"/x tmpfs 1 0 -2\n")))
	assert.True(t, cm.SwapOn([]byte(header+"/dev/sda2 partition 1000 0 -2\n")))
	assert.EqualError(t, cm.ErrSwapOn, "running with swap on is not supported, please disable swap or set --fail-swap-on flag to false")

	// cm-31
	assert.ErrorIs(t, cm.CheckVersion(cgroups.Facts{Version: 1}, true), cm.ErrCgroupV1)
	assert.NoError(t, cm.CheckVersion(cgroups.Facts{Version: 1}, false))
	assert.NoError(t, cm.CheckVersion(cgroups.Facts{Version: 2}, true))
}

// A node is a manager on a tree in memory.
type node struct {
	*cm.Manager
	tree   *cgroups.Tree
	mu     sync.Mutex
	events []string
	ops    []string
	fixed  []string
}

var every = []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "hugetlb", "systemd"}

func newNode(t *testing.T, cfg cm.Config) *node {
	t.Helper()
	n := &node{tree: cgroups.NewTree(cgroups.Facts{Version: 2, Controllers: every})}
	if cfg.Tree != nil {
		n.tree = cfg.Tree.(*cgroups.Tree)
	}
	cfg.Tree = n.tree
	if cfg.Capacity == nil {
		cfg.Capacity = list("cpu=4 memory=8Gi pid=32768")
	}
	cfg.Events.Record = func(e runtime.Event) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.events = append(n.events, e.Type+" "+e.Reason+" "+e.Message)
	}
	cfg.Hooks = cm.Hooks{
		Operation: func(o cm.OperationInfo) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.ops = append(n.ops, o.Type+" "+o.Name.String())
		},
		Repaired: func(name cgroups.Name, c []cgroups.Change) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.fixed = append(n.fixed, fmt.Sprint(name, " ", c))
		},
	}
	var err error
	n.Manager, err = cm.New(cfg)
	require.NoError(t, err)
	return n
}

func (n *node) has(t *testing.T, path string) cgroups.Resources {
	t.Helper()
	r, err := n.tree.Read(cgroups.ParsePath(path, cgroups.Cgroupfs))
	require.NoError(t, err)
	return r
}

func (n *node) there(path string) bool {
	_, err := n.tree.Read(cgroups.ParsePath(path, cgroups.Cgroupfs))
	return err == nil
}

func TestTheTreeOfANode(t *testing.T) { // cm-12, cm-13, cm-18, cm-23, cm-24
	n := newNode(t, cm.Config{Reserved: cm.Reserved{System: list("cpu=1 memory=1Gi pid=768")}})
	require.NoError(t, n.Setup(t.Context()))
	assert.Equal(t, []string{"Normal NodeAllocatableEnforced Updated Node Allocatable limit across pods"}, n.events)
	for _, p := range []*v1.Pod{pod("g-1", guaranteed), pod("b-1", burstable), pod("b-2", burstable), pod("e-1", besteffort)} {
		require.NoError(t, n.Ensure(t.Context(), p))
	}
	assert.Equal(t, `/: 
/kubepods: cpu weight 118, cpu quota -1, cpu period 100000, memory 7516192768, memory min 0, memory low 0, memory high -1, pids 32000
/kubepods/besteffort: cpu weight 1, cpu quota -1, cpu period 100000, memory -1, memory min 0, memory low 0, memory high -1, pids -1
/kubepods/besteffort/pode-1: cpu weight 1, cpu quota -1, cpu period 100000, memory -1, memory min 0, memory low 0, memory high -1, pids -1
/kubepods/burstable: cpu weight 20, cpu quota -1, cpu period 100000, memory -1, memory min 0, memory low 0, memory high -1, pids -1
/kubepods/burstable/podb-1: cpu weight 10, cpu quota -1, cpu period 100000, memory -1, memory min 0, memory low 0, memory high -1, pids -1
/kubepods/burstable/podb-2: cpu weight 10, cpu quota -1, cpu period 100000, memory -1, memory min 0, memory low 0, memory high -1, pids -1
/kubepods/podg-1: cpu weight 20, cpu quota 50000, cpu period 100000, memory 67108864, memory min 0, memory low 0, memory high -1, pids -1
`, n.tree.String())
	assert.True(t, n.Has(pod("b-1", burstable)), "cm-20")
	require.NoError(t, n.Remove(t.Context(), "b-1"))
	assert.False(t, n.Has(pod("b-1", burstable)), "cm-20")
	require.NoError(t, n.Remove(t.Context(), "b-1"), "gone is gone")
	require.NoError(t, n.Remove(t.Context(), "never was"))
	assert.False(t, n.there("/kubepods/burstable/podb-1"))
	assert.Equal(t, *n.has(t, "/kubepods/burstable/podb-2").CPUWeight, *n.has(t, "/kubepods/burstable").CPUWeight, "cm-18, rt-123: after a pod is removed")
	assert.Contains(t, n.ops, "create /kubepods/podg-1", "cm-11")
	assert.Contains(t, n.ops, "destroy /kubepods/burstable/podb-1", "cm-11")
	assert.Contains(t, n.ops, "update /kubepods/burstable", "cm-11")
}
