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

const (
	mib      = 1 << 20
	capacity = 16 << 30         // memory of a node, in bytes
	replicas = 30               // pods of a node
	period   = 30 * time.Second // between two evaluations of the node, and until a pod is replaced
)

// measures name the values of an outcome.
var measures = [4]string{"pods evicted", "of high priority", "hours of work lost", "OOM kills"}

type outcome [len(measures)]float64

// start is when the simulation of each node begins.
var start = time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)

// A replica is a pod that is replaced when it terminates. Its memory usage depends only on
// its age.
type replica struct {
	pod       *v1.Pod
	created   time.Time // in the future: being replaced
	base      float64   // bytes
	leak      float64   // bytes per hour
	burst     float64   // bytes, for a tenth of every cycle
	cycle     time.Duration
	important bool
}

// newReplicas draws pods that request most of the memory of a node. Most use less than
// they request; some leak or have bursts.
func newReplicas(seed uint64) []*replica {
	rng := rand.New(rand.NewPCG(seed, 1))
	var all []*replica
	for i := range replicas {
		request := float64(128+rng.IntN(640)) * mib
		r := &replica{base: request * (0.4 + 0.5*rng.Float64()), cycle: time.Duration(20+rng.IntN(100)) * time.Minute, important: rng.IntN(4) == 0}
		switch rng.IntN(5) {
		case 0:
			r.leak = request * (0.1 + 0.4*rng.Float64())
		case 1:
			r.burst = request * (0.5 + 1.5*rng.Float64())
		}
		priority := int32(0)
		if r.important {
			priority = 1000
		}
		name := fmt.Sprintf("pod%d", i)
		r.pod = &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
			Spec: v1.PodSpec{Priority: &priority, Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceMemory: *resource.NewQuantity(int64(request), resource.BinarySI)},
			}}}},
		}
		r.replace(start.Add(time.Duration(rng.IntN(3600)) * time.Second))
		all = append(all, r)
	}
	return all
}

// replace terminates the pod and creates the next one at the given time.
func (r *replica) replace(at time.Time) {
	r.created = at
	pod := *r.pod // plans refer to the old one
	pod.CreationTimestamp = metav1.NewTime(at)
	r.pod = &pod
}

// usage returns the memory usage in bytes, zero while the pod is being replaced.
func (r *replica) usage(now time.Time) int64 {
	age := now.Sub(r.created)
	if age < 0 {
		return 0
	}
	bytes := r.base + r.leak*age.Hours()
	if age%r.cycle > r.cycle*9/10 {
		bytes += r.burst
	}
	return int64(bytes)
}

// simulate runs a node for 12 hours and evicts pods in the given ranking.
func simulate(seed uint64, rank func(s eviction.Signal, a, b *eviction.Candidate) (int, string)) (out outcome) {
	all := newReplicas(seed)
	policy := eviction.Policy{Thresholds: []eviction.Threshold{{Signal: eviction.MemoryAvailable, Value: eviction.Value{Percentage: 0.05}}}}
	var state eviction.PlanState
	for now := start; now.Before(start.Add(12 * time.Hour)); now = now.Add(period) {
		in := eviction.Inputs{Policy: policy, Rank: rank, Now: now, State: state, Summary: new(statsapi.Summary)}
		var used int64
		for _, r := range all {
			bytes := r.usage(now)
			if bytes == 0 {
				continue
			}
			used += bytes
			in.Pods = append(in.Pods, r.pod)
			in.Summary.Pods = append(in.Summary.Pods, statsapi.PodStats{
				PodRef: statsapi.PodReference{UID: string(r.pod.UID)},
				Memory: &statsapi.MemoryStats{WorkingSetBytes: new(uint64(bytes))},
			})
		}
		if used > capacity { // the kernel kills the largest
			out[3]++
			slices.MaxFunc(all, func(a, b *replica) int { return int(a.usage(now) - b.usage(now)) }).replace(now.Add(period))
			continue
		}
		in.Memory = &eviction.MemoryStats{Available: capacity - used, Capacity: capacity, At: now}
		plan := in.Plan()
		state = plan.State
		if plan.Chosen == nil {
			continue
		}
		i := slices.IndexFunc(plan.Ranking, func(c eviction.Candidate) bool { return c.Exempt == "" })
		if i < 0 {
			continue
		}
		victim := all[slices.IndexFunc(all, func(r *replica) bool { return r.pod.UID == plan.Ranking[i].Pod.UID })]
		out[0]++
		if victim.important {
			out[1]++
		}
		out[2] += now.Sub(victim.created).Hours()
		victim.replace(now.Add(period))
	}
	return out
}
