package eviction_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podresource "k8s.io/component-helpers/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/eviction"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

var signals = []eviction.Signal{
	"memory.available", "allocatableMemory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available",
}

// some returns random figures: mostly small ones close to each other, so that pods
// tie; sometimes none, or an impossible one.
func some(r *rand.Rand, odd bool) *uint64 {
	n := r.Uint64N(8) * 100
	if odd {
		switch r.IntN(12) {
		case 0:
			return nil
		case 1:
			n = math.MaxUint64 - r.Uint64N(3)
		case 2:
			n = math.MaxInt64
		}
	}
	return &n
}

func randomFS(r *rand.Rand, odd bool) *statsapi.FsStats {
	if odd && r.IntN(10) == 0 {
		return nil
	}
	return &statsapi.FsStats{
		Time:           metav1.NewTime(noon.Add(time.Duration(r.IntN(3)) * time.Second)),
		AvailableBytes: some(r, odd), CapacityBytes: new(uint64(800)), UsedBytes: some(r, odd),
		InodesFree: some(r, odd), Inodes: new(uint64(800)), InodesUsed: some(r, odd),
	}
}

func randomMemory(r *rand.Rand, odd bool) *statsapi.MemoryStats {
	if odd && r.IntN(10) == 0 {
		return nil
	}
	return &statsapi.MemoryStats{AvailableBytes: some(r, odd), WorkingSetBytes: some(r, odd)}
}

func randomPod(r *rand.Rand, i int) *v1.Pod {
	pod := podOf(fmt.Sprintf("pod%d", i))
	pod.CreationTimestamp = metav1.NewTime(noon.Add(-time.Duration(r.IntN(3)) * time.Hour))
	if r.IntN(3) > 0 {
		pod.Spec.Priority = new(int32(r.IntN(3) - 1))
	}
	for _, name := range []v1.ResourceName{v1.ResourceMemory, v1.ResourceEphemeralStorage} {
		if r.IntN(2) == 0 {
			c := &pod.Spec.Containers[0]
			c.Resources.Requests = quantities(c.Resources.Requests, name, *resource.NewQuantity(int64(r.IntN(8)*100), resource.DecimalSI))
		}
	}
	return pod
}

func randomStats(r *rand.Rand, pod *v1.Pod, odd bool) statsapi.PodStats {
	return statsapi.PodStats{
		PodRef: statsapi.PodReference{UID: string(pod.UID)}, Memory: randomMemory(r, odd),
		ProcessStats: &statsapi.ProcessStats{ProcessCount: some(r, odd)},
		Containers:   []statsapi.ContainerStats{{Name: "main", Memory: randomMemory(r, odd), Rootfs: randomFS(r, odd), Logs: randomFS(r, odd)}},
		VolumeStats:  []statsapi.VolumeStats{{Name: "data", FsStats: statsapi.FsStats{UsedBytes: some(r, odd)}}},
	}
}

// randomInputs makes a node. With odd, figures may be missing or impossible.
func randomInputs(r *rand.Rand, pods int, odd bool) eviction.Inputs {
	in := eviction.Inputs{Now: noon.Add(10 * time.Second), ImageBytes: map[types.UID]int64{}}
	in.RootDevice, in.ImageDevice, in.LayerDevice = eviction.Layout(r.IntN(3)).Devices()
	in.Policy.MaxVictims = r.IntN(4)
	for _, s := range signals {
		if r.IntN(2) == 0 {
			continue
		}
		t := eviction.Threshold{Signal: s, Value: eviction.Value{Percentage: float32(r.IntN(100)) / 100}}
		if r.IntN(3) == 0 {
			t.GracePeriod = time.Duration(r.IntN(20)) * time.Second
		}
		if r.IntN(3) == 0 {
			t.MinReclaim = &eviction.Value{Quantity: resource.NewQuantity(int64(r.IntN(300)), resource.DecimalSI)}
		}
		in.Policy.Thresholds = append(in.Policy.Thresholds, t)
	}
	in.Summary = &statsapi.Summary{Node: statsapi.NodeStats{
		Memory: randomMemory(r, odd), Fs: randomFS(r, odd), Runtime: &statsapi.RuntimeStats{ImageFs: randomFS(r, odd), ContainerFs: randomFS(r, odd)},
		Rlimit:           &statsapi.RlimitStats{MaxPID: new(int64(800)), NumOfRunningProcesses: new(int64(r.IntN(1000) - 50))},
		SystemContainers: []statsapi.ContainerStats{{Name: "pods", Memory: randomMemory(r, odd)}},
	}}
	for i := range pods {
		pod := randomPod(r, i)
		in.Pods = append(in.Pods, pod)
		if r.IntN(8) > 0 {
			in.Summary.Pods = append(in.Summary.Pods, randomStats(r, pod, odd))
		}
		in.ImageBytes[pod.UID] = int64(r.IntN(3) * 100)
	}
	return in
}

// checkInvariant calls check with random nodes; the seed of a failure is logged.
func checkInvariant(t *testing.T, check func(t *testing.T, r *rand.Rand, in eviction.Inputs)) {
	t.Helper()
	for seed := range uint64(800) {
		r := rand.New(rand.NewPCG(seed, 10))
		in := randomInputs(r, 1+r.IntN(9), seed%2 == 1)
		check(t, r, in)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func order(p *eviction.Plan) (names []string) {
	for _, r := range p.Ranking {
		names = append(names, r.Pod.Name)
	}
	return names
}

func TestEqualInputsGiveEqualPlans(t *testing.T) {
	checkInvariant(t, func(t *testing.T, r *rand.Rand, in eviction.Inputs) {
		before, err := json.Marshal(in)
		require.NoError(t, err)
		a := in.Plan()
		after, err := json.Marshal(in)
		require.NoError(t, err)
		assert.Equal(t, string(before), string(after), "nothing that it is given is changed")
		in.Pods = slices.Clone(in.Pods)
		r.Shuffle(len(in.Pods), func(i, j int) { in.Pods[i], in.Pods[j] = in.Pods[j], in.Pods[i] })
		in.Summary.Pods = slices.Clone(in.Summary.Pods)
		r.Shuffle(len(in.Summary.Pods), func(i, j int) { in.Summary.Pods[i], in.Summary.Pods[j] = in.Summary.Pods[j], in.Summary.Pods[i] })
		b := in.Plan()
		assert.Equal(t, order(a), order(b))
		assert.Equal(t, a.Met, b.Met)
		assert.Equal(t, a.Chosen, b.Chosen)
		assert.Equal(t, a.Steps, b.Steps)
		assert.True(t, eviction.SameState(a, b))
		assert.Equal(t, a.Conditions, b.Conditions)
	})
}

func TestNoPodIsEvictedWithoutAThresholdThatIsMet(t *testing.T) {
	checkInvariant(t, func(t *testing.T, r *rand.Rand, in eviction.Inputs) {
		p := in.Plan()
		if p.Chosen == nil {
			assert.Empty(t, p.Ranking)
			assert.Zero(t, p.Victims)
			assert.Empty(t, p.Steps)
			return
		}
		c := p.Chosen
		assert.Less(t, c.Available, c.Threshold.Value.Of(c.Capacity), "the first time there is nothing to hold")
		assert.False(t, c.Waiting || c.Stale)
		assert.Positive(t, c.Deficit)
		assert.Contains(t, p.Conditions, c.Threshold.Signal.Condition())
		for _, o := range p.Observations {
			assert.True(t, 0 <= o.Available && o.Available <= o.Capacity, "a usage beyond the capacity is not used: %v", o)
		}
		after := p.After(&statsapi.Summary{}, nil)
		assert.Nil(t, after.Chosen, "no pod is evicted for unknown figures")
		assert.Empty(t, after.Ranking)
	})
}

func TestAHigherPriorityNeverMakesAPodGoEarlier(t *testing.T) {
	checkInvariant(t, func(t *testing.T, r *rand.Rand, in eviction.Inputs) {
		before := in.Plan()
		if before.Chosen == nil {
			return
		}
		i := r.IntN(len(in.Pods))
		name := in.Pods[i].Name
		in.Pods = slices.Clone(in.Pods)
		in.Pods[i] = in.Pods[i].DeepCopy()
		old := int32(0)
		if p := in.Pods[i].Spec.Priority; p != nil {
			old = *p
		}
		in.Pods[i].Spec.Priority = new(old + 1 + int32(r.IntN(3)))
		after := in.Plan()
		assert.GreaterOrEqual(t, slices.Index(order(after), name), slices.Index(order(before), name))
	})
}

func TestWhoIsAwayDoesNotChangeTheOrderOfTheOthers(t *testing.T) {
	checkInvariant(t, func(t *testing.T, r *rand.Rand, in eviction.Inputs) {
		before := in.Plan()
		if before.Chosen == nil {
			return
		}
		i := r.IntN(len(in.Pods))
		gone := in.Pods[i].Name
		in.Pods = slices.Delete(slices.Clone(in.Pods), i, i+1)
		want := slices.DeleteFunc(order(before), func(n string) bool { return n == gone })
		assert.True(t, slices.Equal(want, order(in.Plan())), "%v, then %v", want, order(in.Plan()))
	})
}

func TestAUsageAboveTheCapacityEvictsNoPod(t *testing.T) {
	checkInvariant(t, func(t *testing.T, r *rand.Rand, in eviction.Inputs) {
		in.Policy.MachineMemory = 1000
		n := &in.Summary.Node
		n.Memory = &statsapi.MemoryStats{AvailableBytes: new(uint64(0)), WorkingSetBytes: new(1001 + r.Uint64())}
		n.SystemContainers = []statsapi.ContainerStats{{Name: "pods", Memory: n.Memory}}
		n.Fs = &statsapi.FsStats{AvailableBytes: new(uint64(0)), CapacityBytes: new(uint64(100)), UsedBytes: new(uint64(101)), InodesFree: new(uint64(101)), Inodes: new(uint64(100))}
		n.Runtime.ImageFs = &statsapi.FsStats{AvailableBytes: new(uint64(101)), CapacityBytes: new(uint64(100))}
		n.Runtime.ContainerFs = &statsapi.FsStats{AvailableBytes: new(uint64(math.MaxUint64)), CapacityBytes: new(uint64(100))}
		n.Rlimit = &statsapi.RlimitStats{MaxPID: new(int64(10)), NumOfRunningProcesses: new(int64(11))}
		p := in.Plan()
		assert.Nil(t, p.Chosen)
		assert.Empty(t, p.Observations)
		assert.Empty(t, p.Conditions)
		assert.NotEmpty(t, p.Invalid)
	})
}

func TestTheRequestOfAPodIsThatOfPodRequests(t *testing.T) {
	checkInvariant(t, func(t *testing.T, r *rand.Rand, in eviction.Inputs) {
		pod := in.Pods[0].DeepCopy()
		list := func() v1.ResourceList {
			return v1.ResourceList{v1.ResourceMemory: *resource.NewQuantity(int64(r.IntN(1000)), resource.DecimalSI), v1.ResourceEphemeralStorage: *resource.NewQuantity(int64(r.IntN(1000)), resource.DecimalSI)}
		}
		for range r.IntN(4) {
			c := v1.Container{Name: "init", Resources: v1.ResourceRequirements{Requests: list()}}
			if r.IntN(2) == 0 {
				c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
			}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		}
		if r.IntN(2) == 0 {
			pod.Spec.Overhead = list()
		}
		if r.IntN(3) == 0 {
			pod.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("777")}}
		}
		in.Pods = []*v1.Pod{pod}
		in.Policy = eviction.Policy{Thresholds: []eviction.Threshold{{Signal: "memory.available", Value: eviction.Value{Percentage: 1}}}}
		if r.IntN(2) == 0 {
			in.Policy.Thresholds[0].Signal = "nodefs.available"
		}
		p := in.Plan()
		if p.Chosen == nil {
			return
		}
		q := podresource.PodRequests(pod, podresource.PodResourcesOptions{})[p.Chosen.Threshold.Signal.Resource()]
		assert.Equal(t, q.Value(), p.Ranking[0].Request)
	})
}

func FuzzPlan(f *testing.F) {
	f.Add(uint64(1), uint64(2), int64(0), false)
	f.Add(uint64(7), uint64(11), int64(-3600), true)
	f.Fuzz(func(t *testing.T, a, b uint64, jump int64, odd bool) {
		r := rand.New(rand.NewPCG(a, b))
		in := randomInputs(r, r.IntN(12), odd)
		for range 4 { // passes, between which anything happens
			p := in.Plan()
			require.True(t, p.Chosen != nil || p.Victims == 0)
			require.LessOrEqual(t, p.Victims, max(in.Policy.MaxVictims, 1))
			for i := range p.Ranking {
				e := p.Victim(i)
				require.NotEmpty(t, e.Message)
				back := new(eviction.Explanation)
				require.NoError(t, json.Unmarshal([]byte(e.Annotations[eviction.AnnotationExplanation]), back))
				require.Equal(t, e.Explanation, back)
			}
			for _, m := range p.Met {
				require.False(t, m.Since.After(in.Now))
				require.Positive(t, m.Deficit)
			}
			next := randomInputs(r, r.IntN(12), odd)
			_ = p.After(next.Summary, nil)
			next.Policy, next.Last = in.Policy, p
			next.Now = in.Now.Add(time.Duration(jump%1_000_000) * time.Second) // the clock may be set back
			in = next
		}
	})
}
