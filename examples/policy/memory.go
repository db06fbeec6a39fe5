package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/eviction"
)

// monday is when all nodes begin to live.
var monday = time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)

const (
	mib      = 1 << 20
	capacity = 16 << 30 // of the node's memory
	tenants  = 30
	look     = 30 * time.Second // from one look at the node to the next
	vacancy  = 30 * time.Second // until there is another pod for one that went
)

// memoryMeasures are what half a day of a node is judged by; less is better.
var memoryMeasures = []string{"pods evicted", "of high priority", "hours of work lost", "killed by the kernel"}

// A tenant is a place for a pod, of which there is another one when it goes, as
// with a Deployment. How much its pods use depends on their age alone.
type tenant struct {
	pod       *v1.Pod
	since     time.Time // the pod's start; in the future: there is none yet
	base      float64   // bytes
	leak      float64   // bytes an hour
	burst     float64   // bytes, for a tenth of
	period    time.Duration
	important bool
}

// drawTenants fills a node with pods that ask for most of its memory. Many use less
// than they ask for, and some more: they leak, or burst.
func drawTenants(seed uint64) []*tenant {
	rng := rand.New(rand.NewPCG(seed, 1))
	var all []*tenant
	for i := range tenants {
		request := float64(128+rng.IntN(640)) * mib
		t := &tenant{base: request * (0.4 + 0.5*rng.Float64()), period: time.Duration(20+rng.IntN(100)) * time.Minute, important: rng.IntN(4) == 0}
		switch rng.IntN(5) {
		case 0:
			t.leak = request * (0.1 + 0.4*rng.Float64())
		case 1:
			t.burst = request * (0.5 + 1.5*rng.Float64())
		}
		priority := int32(0)
		if t.important {
			priority = 1000
		}
		name := fmt.Sprintf("pod%d", i)
		t.pod = &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
			Spec: v1.PodSpec{Priority: &priority, Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceMemory: *resource.NewQuantity(int64(request), resource.BinarySI)},
			}}}},
		}
		t.start(monday.Add(time.Duration(rng.IntN(3600)) * time.Second))
		all = append(all, t)
	}
	return all
}

func (t *tenant) start(at time.Time) {
	t.since = at
	pod := *t.pod // plans keep what they were given
	pod.CreationTimestamp = metav1.NewTime(at)
	t.pod = &pod
}

// uses is what its pod uses, in bytes; 0: there is none.
func (t *tenant) uses(now time.Time) int64 {
	age := now.Sub(t.since)
	if age < 0 {
		return 0
	}
	bytes := t.base + t.leak*age.Hours()
	if age%t.period > t.period*9/10 {
		bytes += t.burst
	}
	return int64(bytes)
}

// liveMemory is half a day of a node. It returns what memoryMeasures name.
func liveMemory(seed uint64, order func(a, b eviction.Rank) int) []float64 {
	var evicted, important, lost, killed float64
	all := drawTenants(seed)
	policy := eviction.Policy{Thresholds: []eviction.Threshold{{Signal: eviction.MemoryAvailable, Value: eviction.Value{Percentage: 0.05}}}}
	var state eviction.State
	for now := monday; now.Before(monday.Add(12 * time.Hour)); now = now.Add(look) {
		in := eviction.Inputs{Policy: policy, Now: now, State: state, Summary: new(statsapi.Summary)}
		var used int64
		for _, t := range all {
			bytes := t.uses(now)
			if bytes == 0 {
				continue
			}
			used += bytes
			in.Pods = append(in.Pods, t.pod)
			in.Summary.Pods = append(in.Summary.Pods, statsapi.PodStats{
				PodRef: statsapi.PodReference{UID: string(t.pod.UID)},
				Memory: &statsapi.MemoryStats{WorkingSetBytes: new(uint64(bytes))},
			})
		}
		if used > capacity { // nobody looked in time: the kernel takes the largest
			killed++
			slices.MaxFunc(all, func(a, b *tenant) int { return int(a.uses(now) - b.uses(now)) }).start(now.Add(vacancy))
			continue
		}
		in.Memory = &eviction.MemoryFigure{Available: capacity - used, Capacity: capacity, At: now}
		plan := in.Plan()
		state = plan.State
		if plan.Chosen == nil {
			continue
		}
		if order != nil {
			slices.SortStableFunc(plan.Ranking, order)
		}
		i := slices.IndexFunc(plan.Ranking, func(r eviction.Rank) bool { return r.Refused == "" })
		if i < 0 {
			continue
		}
		victim := all[slices.IndexFunc(all, func(t *tenant) bool { return t.pod.UID == plan.Ranking[i].Pod.UID })]
		evicted++
		if victim.important {
			important++
		}
		lost += now.Sub(victim.since).Hours()
		victim.start(now.Add(vacancy))
	}
	return []float64{evicted, important, lost, killed}
}
