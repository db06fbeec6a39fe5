package cpu_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/runtime"
)

// pod has a container "c0", … for each amount of CPU.
func pod(uid string, amounts ...string) *v1.Pod {
	p := &v1.Pod{}
	p.UID, p.Name = types.UID(uid), uid
	for i, amount := range amounts {
		p.Spec.Containers = append(p.Spec.Containers, container(fmt.Sprint("c", i), amount))
	}
	return p
}

func container(name, amount string) v1.Container {
	c := v1.Container{Name: name}
	c.Resources.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse(amount), v1.ResourceMemory: resource.MustParse("1Mi")}
	c.Resources.Requests = c.Resources.Limits
	return c
}

func open(t testing.TB, machine string, cfg cpu.Config) *cpu.Manager {
	t.Helper()
	cfg.Machine, cfg.Policy = topologytest.Machine(t, machine), cpu.Static
	if cfg.Reserved.IsEmpty() && cfg.ReservedMilli == 0 {
		cfg.ReservedMilli = 1000
	}
	m, err := cpu.Open(cfg)
	require.NoError(t, err)
	return m
}

func allocate(t testing.TB, m *cpu.Manager, p *v1.Pod) error {
	t.Helper()
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if err := m.Allocate(t.Context(), p, &list[i], topology.Any()); err != nil {
				return err
			}
		}
	}
	return nil
}

func has(m *cpu.Manager, uid, name string) string {
	set, own := m.CPUs(types.UID(uid), name)
	if !own {
		return "shared " + set.String()
	}
	return set.String()
}

// cpu-3
func TestContainersWithExclusiveCPUs(t *testing.T) {
	burstable := pod("b", "2")
	burstable.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	noRequest := pod("n", "2")
	noRequest.Spec.Containers[0].Resources.Requests = nil
	asAWhole := pod("w", "2")
	asAWhole.Spec.Resources = &v1.ResourceRequirements{Limits: asAWhole.Spec.Containers[0].Resources.Limits, Requests: asAWhole.Spec.Containers[0].Resources.Limits}
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want int
	}{
		"whole":                 {pod("a", "2"), 2},
		"in thousandths":        {pod("a", "3000m"), 3},
		"not whole":             {pod("a", "1500m"), 0},
		"less than one":         {pod("a", "500m"), 0},
		"burstable":             {burstable, 0},
		"limit alone":           {noRequest, 2},
		"as a pod":              {asAWhole, 0},
		"more than any machine": {pod("a", "9E"), 0},
		"negative":              {pod("a", "-2"), 0},
	} {
		assert.Equal(t, tc.want, cpu.Wants(tc.pod, &tc.pod.Spec.Containers[0], ""), name)
	}
}

// cpu-2
func TestReservedCPUsAreNeverExclusive(t *testing.T) {
	_, err := cpu.Open(cpu.Config{Machine: topologytest.Machine(t, "desktop-1s"), Policy: cpu.Static})
	require.EqualError(t, err, "cpu: the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero")
	m := open(t, "desktop-1s", cpu.Config{ReservedMilli: 1001}) // two, rounded up
	assert.Equal(t, "1-3,5-7", m.Allocatable().String(), "a core, from the low IDs")
	m = open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "7")})
	assert.Equal(t, "0-6", m.Allocatable().String())
	_, err = cpu.Open(cpu.Config{Machine: topologytest.Machine(t, "desktop-1s"), Policy: cpu.Static, Reserved: cpus(t, "6-9")})
	require.ErrorContains(t, err, "reserved CPUs 8-9 do not exist")
	_, err = cpu.Open(cpu.Config{Machine: topologytest.Machine(t, "desktop-1s"), Policy: cpu.Static, ReservedMilli: 9000})
	require.ErrorContains(t, err, "unable to reserve 9 CPUs of 8")

	strict := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0"), Options: cpu.Options{StrictReservation: true}})
	assert.Equal(t, "shared 1-7", has(strict, "x", "c"), "cpu-6: not in the pool")
	require.NoError(t, allocate(t, strict, pod("a", "7")))
	assert.Equal(t, "shared 0", has(strict, "x", "c"), "and yet, if nothing else is left")
}

// The options of the policy apply to the reserved CPUs too.
func TestReservedCPUsAreChosenWithTheOptions(t *testing.T) {
	all := topologytest.Machine(t, "xeon-2s").All()
	for _, tc := range []struct {
		options cpu.Options
		milli   int64
		want    string
	}{
		{cpu.Options{}, 2000, "0,20"},
		{cpu.Options{DistributeAcrossCore: true}, 2000, "0,2"},
		{cpu.Options{AlignByUncoreCache: true}, 2000, "0,20"},
		{cpu.Options{}, 22_000, "0-2,4,6,8,10,12,14,16,18,20-22,24,26,28,30,32,34,36,38"},
		{cpu.Options{DistributeAcrossNUMA: true}, 22_000, "0-11,20-29"},
	} {
		m := open(t, "xeon-2s", cpu.Config{ReservedMilli: tc.milli, Options: tc.options})
		assert.Equal(t, tc.want, all.Difference(m.Allocatable()).String(), "%d %+v", tc.milli, tc.options)
	}
}

// cpu-3, cpu-9
func TestCPUsAreGivenAndComeBack(t *testing.T) {
	m := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0")})
	assert.Equal(t, "shared 0-7", has(m, "x", "c"))
	require.NoError(t, allocate(t, m, pod("a", "2", "500m", "1")))
	assert.Equal(t, "1,5", has(m, "a", "c0"))
	assert.Equal(t, "shared 0,2-3,6-7", has(m, "a", "c1"))
	assert.Equal(t, "4", has(m, "a", "c2"))
	require.NoError(t, allocate(t, m, pod("a", "2", "500m", "1")), "it has them already")
	require.NoError(t, allocate(t, m, pod("b", "4")))
	require.ErrorIs(t, allocate(t, m, pod("c", "1")), cpu.ErrTooFew)
	assert.True(t, m.Holds("b"))
	m.Retain(func(uid types.UID) bool { return uid != "b" })
	assert.False(t, m.Holds("b"))
	require.NoError(t, allocate(t, m, pod("c", "1")))
	m.Free("a")
	m.Free("c")
	assert.Equal(t, "shared 0-7", has(m, "x", "c"))
}

// cpu-7
func TestInitContainersHandTheirCPUsOn(t *testing.T) {
	m := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0")})
	p := pod("a", "2", "2")
	always := v1.ContainerRestartPolicyAlways
	sidecar := container("sidecar", "1")
	sidecar.RestartPolicy = &always
	p.Spec.InitContainers = []v1.Container{container("one", "4"), sidecar, container("two", "2")}
	require.NoError(t, allocate(t, m, p))
	one, _ := m.CPUs("a", "one")
	side, _ := m.CPUs("a", "sidecar")
	two, _ := m.CPUs("a", "two")
	c0, _ := m.CPUs("a", "c0")
	c1, _ := m.CPUs("a", "c1")
	assert.True(t, side.Intersection(two).IsEmpty(), "it keeps its own")
	assert.True(t, side.Union(two).Intersection(c0.Intersection(c1)).IsEmpty())
	assert.True(t, c0.Intersection(c1).IsEmpty())
	assert.True(t, side.Intersection(c0.Union(c1)).IsEmpty())
	assert.LessOrEqual(t, 7-one.Union(side).Union(two).Union(c0).Union(c1).Size(), 3)
	m.Free("a")
	assert.Equal(t, "shared 0-7", has(m, "x", "c"))
}

// cpu-6
func TestOnlyWholeCores(t *testing.T) {
	m := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0"), Options: cpu.Options{FullPCPUsOnly: true}})
	err := allocate(t, m, pod("a", "3"))
	var refusal *runtime.Rejection
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, runtime.Rejection{Reason: "SMTAlignmentError", Message: "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"}, *refusal)
	require.ErrorAs(t, allocate(t, m, pod("a", "8")), &refusal)
	assert.Equal(t, "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, requested CPUs = 8, CPUs per core = 2", refusal.Message)
	require.NoError(t, allocate(t, m, pod("a", "6")))
	assert.Equal(t, "1-3,5-7", has(m, "a", "c0"))
}

func TestHintsOfContainersAndPods(t *testing.T) {
	m := open(t, "xeon-2s-smt-off", cpu.Config{Reserved: cpus(t, "0")})
	p := pod("a", "4", "14", "500m")
	p.Spec.InitContainers = []v1.Container{container("init", "20")}
	first := func(h topology.Hints) string {
		if h == nil {
			return "any"
		}
		if len(h["cpu"]) == 0 {
			return "none"
		}
		return fmt.Sprint(h["cpu"][0].Nodes, h["cpu"][0].Preferred)
	}
	assert.True(t, m.Concerns(p))
	assert.False(t, m.Concerns(pod("b", "500m")))
	assert.Equal(t, "0 true", first(m.Hints(p, &p.Spec.Containers[0])))
	assert.Equal(t, "any", first(m.Hints(p, &p.Spec.Containers[2])))
	assert.Equal(t, "0,1 true", first(m.Hints(p, nil)), "20 at most at a time")
	assert.Equal(t, "none", first(m.Hints(pod("b", "32"), nil)))
	require.NoError(t, m.Allocate(t.Context(), p, &p.Spec.Containers[0], topology.Hint{Nodes: topology.MaskOf(1)}))
	assert.Equal(t, "1 true", first(m.Hints(p, &p.Spec.Containers[0])), "where it is")
	p.Spec.Containers[0] = container("c0", "5")
	assert.Equal(t, "none", first(m.Hints(p, &p.Spec.Containers[0])), "it keeps 4")
}

// cpu-1: the file is the kubelet's.
func TestTheStateIsInTheKubeletsForm(t *testing.T) {
	for want, s := range map[string]cpu.State{
		`{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`: {Policy: cpu.None},
		`{"policyName":"none","defaultCpuSet":"1-3","entries":{"pod":{"container1":"4-6","container2":"1-3"}},"checksum":3610638499}`: {
			Policy: cpu.None, Shared: cpuset.New(1, 2, 3),
			Assigned: map[types.UID]map[string]cpuset.CPUSet{"pod": {"container1": cpuset.New(4, 5, 6), "container2": cpuset.New(1, 2, 3)}},
		},
	} {
		assert.Equal(t, want, string(s.Encode()))
		back, err := cpu.Decode([]byte(want))
		require.NoError(t, err)
		assert.Equal(t, want, string(back.Encode()))
	}
	dir := t.TempDir()
	m := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0"), Store: state.File(filepath.Join(dir, cpu.StateFile))})
	require.NoError(t, allocate(t, m, pod("a", "2")))
	m = open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0"), Store: state.File(filepath.Join(dir, cpu.StateFile))})
	assert.Equal(t, "1,5", has(m, "a", "c0"), "after a restart")
	assert.NoFileExists(t, filepath.Join(dir, cpu.StateFile+state.Backup))
}

// Each bit of a state flipped once: the change is detected, or the state decodes to
// the same; a running container never loses its CPUs to another.
func TestACorruptStateIsDetected(t *testing.T) {
	m := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0")})
	require.NoError(t, allocate(t, m, pod("a", "2", "1")))
	record, machine := m.State().Encode(), topologytest.Machine(t, "desktop-1s")
	var running []cpu.Running
	for name, set := range m.State().Assigned["a"] {
		running = append(running, cpu.Running{PodUID: "a", Container: name, CPUs: set, Exclusive: true})
	}
	for i := range record {
		for bit := range 8 {
			broken := append([]byte(nil), record...)
			broken[i] ^= 1 << bit
			if bit == i%8 {
				next, err := cpu.Open(cpu.Config{Machine: machine, Policy: cpu.Static, Reserved: cpus(t, "0"), Store: &state.Memory{Record: broken}, Running: running})
				require.NoError(t, err, "byte %d, bit %d: %s", i, bit, broken)
				require.Equal(t, m.State(), next.State())
			}
			got, err := cpu.Decode(broken)
			if err != nil {
				require.ErrorIs(t, err, checkpoint.ErrKubelet)
				continue
			}
			require.Equal(t, string(record), string(got.Encode()), "byte %d, bit %d: %s", i, bit, broken)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`))
	f.Add([]byte(`{"policyName":"static","defaultCpuSet":"0-99999999999","entries":{"":{"":"0-3"}},"checksum":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := cpu.Decode(data)
		if err != nil {
			require.ErrorIs(t, err, checkpoint.ErrKubelet)
			return
		}
		again, err := cpu.Decode(s.Encode())
		require.NoError(t, err)
		require.Equal(t, string(s.Encode()), string(again.Encode()))
	})
}

// cpu-4: the repair of a state that doesn't match the machine.
func TestAStateThatDoesNotMatchTheMachineIsRepaired(t *testing.T) {
	machine := topologytest.Machine(t, "desktop-1s")
	reserved := cpus(t, "0")
	running := func(uid, name, list string, exclusive bool) cpu.Running {
		return cpu.Running{PodUID: types.UID(uid), Container: name, CPUs: cpus(t, list), Exclusive: exclusive}
	}
	with := func(policy cpu.Policy, shared string, assigned ...string) []byte {
		s := cpu.State{Policy: policy, Shared: cpus(t, shared), Assigned: map[types.UID]map[string]cpuset.CPUSet{}}
		for _, a := range assigned {
			uid, list, _ := strings.Cut(a, "=")
			s.Assigned[types.UID(uid)] = map[string]cpuset.CPUSet{"c0": cpus(t, list)}
		}
		return s.Encode()
	}
	for name, tc := range map[string]struct {
		saved    []byte
		policy   cpu.Policy
		running  []cpu.Running
		want     string // the pool
		a        string // the CPUs of a/c0
		kept     bool   // a copy is
		conflict string
		kubelet  string // why a kubelet would not start
	}{
		"it fits":                                   {saved: with(cpu.Static, "0,2-4,6-7", "a=1,5"), want: "0,2-4,6-7", a: "1,5"},
		"there is none":                             {want: "0-7", a: "shared 0-7"},
		"of another policy":                         {saved: with(cpu.None, ""), running: []cpu.Running{running("a", "c0", "1,5", true), running("b", "c0", "0-7", false)}, want: "0,2-4,6-7", a: "1,5", kept: true, kubelet: `configured policy "static" differs from state checkpoint policy "none", please drain this node and delete the CPU manager checkpoint file "memory" before restarting Kubelet`},
		"broken":                                    {saved: []byte(`{"policyName":"static"`), running: []cpu.Running{running("a", "c0", "1,5", true)}, want: "0,2-4,6-7", a: "1,5", kept: true, kubelet: "could not restore state from checkpoint: checkpoint is corrupted"},
		"a CPU is new":                              {saved: with(cpu.Static, "0,2-4,6", "a=1,5"), want: "0,2-4,6-7", a: "1,5", kept: true, kubelet: `current set of available CPUs "0-7" doesn't match with CPUs in state "0-6"`},
		"a CPU is gone, and its container":          {saved: with(cpu.Static, "0-7", "a=8,9"), want: "0-7", a: "shared 0-7", kept: true, kubelet: "doesn't match"},
		"a CPU is gone, its container runs":         {saved: with(cpu.Static, "0-7", "a=8,9"), running: []cpu.Running{running("a", "c0", "8", false)}, conflict: `container "c0" of pod "a" on CPUs 8-9: CPU 9 does not exist`},
		"a CPU is reserved now":                     {saved: with(cpu.Static, "1-7", "a=0"), want: "0-7", a: "shared 0-7", kept: true, kubelet: `not all reserved cpus: "0" are present in defaultCpuSet: "1-7"`},
		"a CPU is reserved now, its container runs": {saved: with(cpu.Static, "1-7", "a=0"), running: []cpu.Running{running("a", "c0", "0", true)}, conflict: "CPU 0 is reserved"},
		"two have a CPU":                            {running: []cpu.Running{running("a", "c0", "1,5", true), running("b", "c0", "5", true)}, conflict: `container "c0" of pod "b" on CPUs 5: CPU 5 is allocated to pod "a"`},
		"the pool overlaps":                         {saved: with(cpu.Static, "0-7", "a=1,5"), want: "0,2-4,6-7", a: "1,5", kept: true, kubelet: "in the default cpuset and assigned"},
		"to none":                                   {saved: with(cpu.Static, "0,2-4,6-7", "a=1,5"), policy: cpu.None, want: "", a: "shared ", kept: true, kubelet: `configured policy "none" differs`},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.policy == "" {
				tc.policy = cpu.Static
			}
			store := &state.Memory{Record: tc.saved}
			m, err := cpu.Open(cpu.Config{Machine: machine, Policy: tc.policy, Reserved: reserved, Store: store, Running: tc.running})
			if tc.conflict != "" {
				var conflict *cpu.ConflictError
				require.ErrorAs(t, err, &conflict)
				require.ErrorContains(t, err, tc.conflict)
				assert.Len(t, conflict.Conflicts, 1)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, m.State().Shared.String())
			assert.Equal(t, tc.a, has(m, "a", "c0"))
			assert.Equal(t, tc.kept, store.Kept != nil)
			assert.Equal(t, string(m.State().Encode()), string(store.Record))

			_, err = cpu.Open(cpu.Config{Machine: machine, Policy: tc.policy, Reserved: reserved, Store: &state.Memory{Record: tc.saved}, RefuseForeign: true})
			if tc.kubelet == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.kubelet)
			}
		})
	}
	assert.True(t, cpu.LooksExclusive(cpus(t, "1,5"), 2048))
	assert.False(t, cpu.LooksExclusive(cpus(t, "1,5"), 1024))
	assert.False(t, cpu.LooksExclusive(cpuset.New(), 0))
}

// CPUs are not allocated if the state can't be saved.
func TestCPUsThatCantBeSavedAreNotGiven(t *testing.T) {
	store := new(full)
	m := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0"), Store: store})
	store.err = errors.New("the disk is full")
	require.ErrorContains(t, allocate(t, m, pod("a", "2")), "the disk is full")
	assert.Equal(t, "shared 0-7", has(m, "a", "c0"))
	store.err = nil
	require.NoError(t, allocate(t, m, pod("a", "2")))
	store.err = errors.New("the disk is full")
	m.Free("a")
	assert.Equal(t, "shared 0-7", has(m, "a", "c0"), "Free takes effect although the state is not saved")
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

// cpu-10
func TestHooksReportPinning(t *testing.T) {
	var pins []string
	var pool []cpu.PoolInfo
	m := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0"), Hooks: cpu.Hooks{
		Pinned: func(i cpu.PinInfo) { pins = append(pins, fmt.Sprint(i.Container, " ", i.CPUs, " ", i.Error == nil)) },
		Pool:   func(i cpu.PoolInfo) { pool = append(pool, i) },
	}})
	require.NoError(t, allocate(t, m, pod("a", "2", "500m")))
	require.Error(t, allocate(t, m, pod("b", "7")))
	assert.Equal(t, []string{"c0 1,5 true", "c0  false"}, pins)
	require.Len(t, pool, 1)
	assert.Equal(t, "1,5", pool[0].Exclusive.String())
	assert.Equal(t, 6, pool[0].Shared.Size())
}

// A pod keeps no more CPUs than its request, which is what the scheduler counts: the
// containers reuse those of init containers first.
func TestCPUsOfInitContainersAreReusedFirst(t *testing.T) { // cpu-7
	for _, tc := range []struct {
		init, apps []string
		want       string
	}{
		{[]string{"1"}, []string{"2"}, "1 | 1,5"},
		{[]string{"1"}, []string{"1", "1"}, "1 | 1 5"},
		{[]string{"3"}, []string{"2"}, "1-2,5 | 1,5"},
		{[]string{"1", "3"}, []string{"4"}, "1 1-2,5 | 1-2,5-6"},
		{[]string{"3", "1"}, []string{"2", "2"}, "1-2,5 1 | 1,5 2,6"},
	} {
		m := open(t, "desktop-1s", cpu.Config{Reserved: cpus(t, "0,4")})
		p := pod("a", tc.apps...)
		for i, n := range tc.init {
			p.Spec.InitContainers = append(p.Spec.InitContainers, container(fmt.Sprint("init", i), n))
		}
		require.NoError(t, allocate(t, m, p))
		var got []string
		for i := range tc.init {
			got = append(got, has(m, "a", fmt.Sprint("init", i)))
		}
		got = append(got, "|")
		for i := range tc.apps {
			got = append(got, has(m, "a", fmt.Sprint("c", i)))
		}
		assert.Equal(t, tc.want, strings.Join(got, " "), "%v", tc)
	}
}
