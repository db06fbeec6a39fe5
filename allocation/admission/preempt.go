package admission

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// preemptable reports whether pod may preempt victim: a critical pod preempts others, and a pod of
// higher priority one of lower priority.
func preemptable(pod, victim *v1.Pod) bool {
	if podspec.IsCritical(pod) && !podspec.IsCritical(victim) {
		return true
	}
	return pod.Spec.Priority != nil && victim.Spec.Priority != nil && *pod.Spec.Priority > *victim.Spec.Priority
}

// errNoVictims means that preemption cannot free enough resources.
var errNoVictims = errors.New("preemption: error finding a set of pods to preempt")

// victims returns which of the others must be terminated to free the resources that pod lacks
// according to Fit or Check. Guaranteed pods are selected only if all Burstable and BestEffort
// pods do not suffice, and Burstable pods only if those and all BestEffort pods do not. Within a
// class the pod that leaves the least missing is selected repeatedly, as in the kubelet (rule
// ev-61), which is not always the smallest set. It returns an error that wraps errNoVictims if
// all of them do not suffice, or if a failure is not about resources.
func victims(pod *v1.Pod, others []*v1.Pod, failures []Failure) ([]*v1.Pod, error) {
	short := need{}
	for _, f := range failures {
		if f.InsufficientResource == nil {
			return nil, fmt.Errorf("%w: %s", errNoVictims, f.Message)
		}
		short[f.InsufficientResource.Resource] = f.InsufficientResource.Missing()
	}
	classes := map[v1.PodQOSClass][]*v1.Pod{}
	left := short
	for _, other := range others {
		if other.UID != pod.UID && preemptable(pod, other) {
			class := podspec.QOSClass(other)
			classes[class] = append(classes[class], other)
			left = left.without(other)
		}
	}
	if !left.met() {
		return nil, fmt.Errorf("%w: no set of running pods found to reclaim resources: %v", errNoVictims, left)
	}
	// First the Guaranteed pods that are necessary even if all others terminate, then the
	// Burstable ones that are necessary in addition, then BestEffort pods.
	var selected []*v1.Pod
	for _, class := range []v1.PodQOSClass{v1.PodQOSGuaranteed, v1.PodQOSBurstable, v1.PodQOSBestEffort} {
		assumed := short.without(selected...)
		for _, later := range after(class) {
			assumed = assumed.without(classes[later]...)
		}
		selected = append(selected, nearest(classes[class], assumed)...)
	}
	return selected, nil
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

// nearest selects pods until short is met, each time the one that leaves the least missing, and
// of equal ones the smallest. The pods must suffice.
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

// A need is the missing amount of each resource; zero or less means none.
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

// String returns what is missing, by name, in the format of the kubelet's events.
func (n need) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if short := n[name]; short > 0 {
			fmt.Fprintf(&b, "(res: %s, q: %d), ", name, short)
		}
	}
	return "[" + b.String() + "]"
}

// distance returns the sum of the squares of the missing amounts, relative to those of whole.
func (n need) distance(whole need) (d float64) {
	for name, short := range n {
		if short > 0 {
			part := float64(short) / float64(whole[name])
			d += part * part
		}
	}
	return d
}

// smaller orders pods by their memory request, then by their CPU request.
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
