package admission

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/qos"
	"github.com/kubeparts/kubeparts/runtime"
)

// systemCritical is the priority from which on pods are critical.
const systemCritical = 2_000_000_000

// Critical reports whether pod is one that others give way to: static, a mirror
// of such, or of the highest priority (adm-10).
func Critical(pod *v1.Pod) bool {
	return runtime.IsStatic(pod) || runtime.IsMirror(pod) || pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical
}

// Preemptable reports whether victim gives way to pod: a critical pod comes
// before those that are not, and a higher priority before a lower (adm-11).
func Preemptable(pod, victim *v1.Pod) bool {
	if Critical(pod) && !Critical(victim) {
		return true
	}
	return pod.Spec.Priority != nil && victim.Spec.Priority != nil && *pod.Spec.Priority > *victim.Spec.Priority
}

// ErrNoVictims says that no pods that may be preempted would make the room.
var ErrNoVictims = errors.New("preemption: error finding a set of pods to preempt")

// Victims returns which of the others have to be terminated so that pod finds the
// resources that it lacks according to [Fit] or [Check]. Guaranteed pods are
// chosen only if all Burstable and BestEffort pods together are not enough, and
// Burstable pods only if these and all BestEffort pods are not (adm-10). Within a
// class pods are chosen one after the other, each time the one that leaves least
// missing, as the kubelet does (ev-61): that is not always the smallest possible
// set. It returns an error that wraps ErrNoVictims if even all of them would not
// do, or if a failure is not about resources (adm-12).
func Victims(pod *v1.Pod, others []*v1.Pod, failures []Failure) ([]*v1.Pod, error) {
	short := need{}
	for _, f := range failures {
		if f.Lack == nil {
			return nil, fmt.Errorf("%w: %s", ErrNoVictims, f.Message)
		}
		short[f.Lack.Resource] = f.Lack.Short()
	}
	classes := map[v1.PodQOSClass][]*v1.Pod{}
	left := short
	for _, other := range others {
		if other.UID != pod.UID && Preemptable(pod, other) {
			class := qos.Class(other)
			classes[class] = append(classes[class], other)
			left = left.without(other)
		}
	}
	if !left.met() {
		return nil, fmt.Errorf("%w: %v", ErrNoVictims, left)
	}
	// The guaranteed that have to go even if all others do; then the burstable
	// that have to go beside those even if all best-effort do; then the rest.
	var victims []*v1.Pod
	for _, class := range []v1.PodQOSClass{v1.PodQOSGuaranteed, v1.PodQOSBurstable, v1.PodQOSBestEffort} {
		assumed := short.without(victims...)
		for _, later := range after(class) {
			assumed = assumed.without(classes[later]...)
		}
		victims = append(victims, nearest(classes[class], assumed)...)
	}
	return victims, nil
}

func after(class v1.PodQOSClass) []v1.PodQOSClass {
	switch class {
	case v1.PodQOSGuaranteed:
		return []v1.PodQOSClass{v1.PodQOSBurstable, v1.PodQOSBestEffort}
	case v1.PodQOSBurstable:
		return []v1.PodQOSClass{v1.PodQOSBestEffort}
	default:
		return nil
	}
}

// nearest takes pods until short is met, each time the one that brings it
// nearest, of equals the smallest. The pods must be enough.
func nearest(pods []*v1.Pod, short need) (taken []*v1.Pod) {
	pods = slices.Clone(pods)
	for !short.met() && len(pods) > 0 {
		best := slices.MinFunc(pods, func(a, b *v1.Pod) int {
			return cmp.Or(
				cmp.Compare(short.without(a).distance(short), short.without(b).distance(short)),
				smaller(a, b),
				cmp.Compare(a.UID, b.UID),
			)
		})
		taken, short = append(taken, best), short.without(best)
		pods = slices.DeleteFunc(pods, func(p *v1.Pod) bool { return p == best })
	}
	return taken
}

// A need is how much of each resource is missing; at or below zero: none.
type need map[v1.ResourceName]int64

func (n need) without(pods ...*v1.Pod) need {
	left := need{}
	for name, short := range n {
		left[name] = short
	}
	for _, pod := range pods {
		has := amounts(pod)
		has[v1.ResourcePods] = 1
		for name := range left {
			left[name] -= has[name]
		}
	}
	return left
}

func (n need) met() bool {
	for _, short := range n {
		if short > 0 {
			return false
		}
	}
	return true
}

// distance is how far off it is: the sum of the squares of what is missing, each
// as a part of what was missing before (ev-61).
func (n need) distance(whole need) (d float64) {
	for name, short := range n {
		if short > 0 {
			part := float64(short) / float64(whole[name])
			d += part * part
		}
	}
	return d
}

// smaller puts first who asks for less memory, then for less CPU (ev-61).
func smaller(a, b *v1.Pod) int {
	hasA, hasB := amounts(a), amounts(b)
	return cmp.Or(
		cmp.Compare(hasA[v1.ResourceMemory], hasB[v1.ResourceMemory]),
		cmp.Compare(hasA[v1.ResourceCPU], hasB[v1.ResourceCPU]),
	)
}

// amount returns a quantity in the base unit of its resource.
func amount(name v1.ResourceName, q resource.Quantity) int64 {
	if name == v1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}
