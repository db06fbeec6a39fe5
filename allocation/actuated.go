package allocation

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/qos"
	"github.com/kubeparts/kubeparts/runtime"
)

// computeNames are the resources that can change while a container runs.
var computeNames = [...]v1.ResourceName{v1.ResourceMemory, v1.ResourceCPU}

// Actuated returns pod, which has what was granted, with what the runtime shows
// in its place: of containers that run and whose cpu and memory are known. A
// request that the runtime does not show counts as in force, for not all of
// them leave a trace; a limit that it does not show is none. podLevel is what
// the pod as a whole was last given; nil: what was granted. Neither is changed.
func Actuated(pod *v1.Pod, observed *runtime.PodStatus, podLevel *v1.ResourceRequirements) *v1.Pod {
	view := Desired(pod, true)
	if podLevel != nil && view.Pod != nil {
		view.Pod = new(figures(podLevel))
	}
	for c := range resizable(&pod.Spec, true) {
		now := running(observed, c.Name)
		if now == nil || now.Resources == nil {
			continue
		}
		own := v1.ResourceRequirements{Requests: maps.Clone(c.Resources.Requests), Limits: maps.Clone(c.Resources.Limits)}
		for _, name := range computeNames {
			if q, ok := now.Resources.Requests[name]; ok {
				put(&own.Requests, name, q)
			}
			if q, ok := now.Resources.Limits[name]; ok {
				put(&own.Limits, name, q)
			} else {
				delete(own.Limits, name)
			}
		}
		view.Containers[c.Name] = own
	}
	return view.Apply(pod)
}

func put(list *v1.ResourceList, name v1.ResourceName, q resource.Quantity) {
	if *list == nil {
		*list = v1.ResourceList{}
	}
	(*list)[name] = q
}

// running returns the instance of that container that runs, or nil.
func running(observed *runtime.PodStatus, name string) *runtime.ContainerStatus {
	if observed == nil {
		return nil
	}
	for i := range observed.Containers {
		if c := &observed.Containers[i]; c.Name == name && c.State == runtime.ContainerRunning {
			return c
		}
	}
	return nil
}

// InProgress reports whether a resize of pod, which has what was granted, is
// under way (al-14): a container that runs has other cpu or memory than it was
// granted, or the pod as a whole has. podLevel as in [Actuated].
//
// A container whose resources nobody knows counts as up to date, and so does a
// limit that was granted away: it cannot be removed while the container runs
// (al-19).
func InProgress(pod *v1.Pod, observed *runtime.PodStatus, podLevel *v1.ResourceRequirements) bool {
	var whole v1.ResourceRequirements
	if pod.Spec.Resources != nil {
		whole = *pod.Spec.Resources
	}
	for c := range resizable(&pod.Spec, true) {
		now := running(observed, c.Name)
		if now != nil && now.Resources != nil && differs(&c.Resources, now.Resources, whole.Limits) {
			return true
		}
	}
	return pod.Spec.Resources != nil && podLevel != nil && differs(pod.Spec.Resources, podLevel, nil)
}

// differs reports whether granted is something else than has, as far as a
// cgroup can tell. A container without a request or limit of its own inherits
// the limit of its pod (cm-33).
func differs(granted, has *v1.ResourceRequirements, inherited v1.ResourceList) bool {
	for _, name := range computeNames {
		if want, ok := granted.Limits[name]; ok {
			got, limited := has.Limits[name]
			if !limited || !alike(name, want, got, qos.MinCPULimit) {
				return true
			}
		}
		// A request that goes away has to be seen to go; one that cannot be
		// seen never is.
		if got, ok := has.Requests[name]; ok {
			want := request(granted, inherited, name)
			if !alike(name, want, got, qos.MinCPURequest) {
				return true
			}
		}
	}
	return false
}

// request returns the request, or else the limit, or else the inherited limit
// (cm-32, cm-33). A limit of zero is none.
func request(r *v1.ResourceRequirements, inherited v1.ResourceList, name v1.ResourceName) resource.Quantity {
	if q, ok := r.Requests[name]; ok {
		return q
	}
	if q := r.Limits[name]; !q.IsZero() {
		return q
	}
	return inherited[name]
}

// alike reports whether two quantities are the same to a cgroup that knows
// nothing less than least milli-CPUs.
func alike(name v1.ResourceName, a, b resource.Quantity, least int64) bool {
	if name == v1.ResourceCPU {
		return max(a.MilliValue(), least) == max(b.MilliValue(), least)
	}
	return a.Cmp(b) == 0
}
