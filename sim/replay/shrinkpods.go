package replay

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/sim/record"
)

// dropPods drops pods, as many at a time as possible.
func (s *shrinker) dropPods() {
	x := newIndex(&Recording{frames: s.best, Header: *s.best[0].Header, Length: s.best[len(s.best)-1].At}, 0, "")
	all := map[types.UID]bool{}
	for uid := range x.pods {
		all[uid] = true
	}
	for _, t := range x.things {
		all[t.pod] = true
	}
	delete(all, "")
	kept := slices.Sorted(maps.Keys(all))
	for size := max(len(kept)/2, 1); len(kept) > 1 && !s.done(); size /= 2 {
		for to := len(kept); to > 0 && len(kept) > 1; to -= size {
			to = min(to, len(kept))
			from := max(to-size, 0)
			dropped := map[types.UID]bool{}
			for _, uid := range kept[from:to] {
				dropped[uid] = true
			}
			if len(dropped) > 0 && s.try(withoutPods(s.best, x, dropped)) {
				kept = slices.Delete(kept, from, to)
			}
		}
		if size <= 1 {
			return
		}
	}
}

// withoutPods returns frames without those of pods.
func withoutPods(frames []record.Frame, x *index, dropped map[types.UID]bool) (out []record.Frame) {
	for _, f := range frames {
		switch {
		case f.Pods != nil:
			p := *f.Pods
			p.Changed = slices.DeleteFunc(slices.Clone(p.Changed), func(pod *v1.Pod) bool { return pod == nil || dropped[pod.UID] })
			p.Removed = slices.DeleteFunc(slices.Clone(p.Removed), func(uid types.UID) bool { return dropped[uid] })
			if len(p.Changed)+len(p.Removed) == 0 && len(f.Pods.Changed)+len(f.Pods.Removed) > 0 {
				continue
			}
			f.Pods = &p
		case f.Call != nil:
			if dropped[x.podOf(parse(f.Call.Request))] {
				continue
			}
			f.Call = withoutListed(f.Call, dropped)
		case f.Event != nil:
			var e runtimeapi.ContainerEventResponse
			if t := x.things[x.eventOf(f.Event, &e)]; t != nil && dropped[t.pod] || dropped[types.UID(e.GetPodSandboxStatus().GetMetadata().GetUid())] {
				continue
			}
		case f.Probe != nil && dropped[f.Probe.Pod], f.Status != nil && dropped[f.Status.UID], f.Operation != nil && dropped[f.Operation.Pod]:
			continue
		}
		out = append(out, f)
	}
	return out
}

// eventOf decodes an event and returns the ID that it is about.
func (x *index) eventOf(f *record.Event, e *runtimeapi.ContainerEventResponse) string {
	if decode(f.Message, e) != nil {
		return ""
	}
	return e.ContainerId
}

// withoutListed returns a call whose answer does not list the things of pods.
func withoutListed(c *record.Call, dropped map[types.UID]bool) *record.Call {
	copied := *c
	copied.Slot, copied.Same = 0, 0
	switch c.Method {
	case "ListContainers":
		var a runtimeapi.ListContainersResponse
		if decode(c.Answer, &a) != nil {
			return c
		}
		a.Containers = slices.DeleteFunc(a.Containers, func(c *runtimeapi.Container) bool { return dropped[types.UID(c.GetLabels()[podUIDLabel])] })
		copied.Answer = encode(&a)
	case "ListPodSandbox":
		var a runtimeapi.ListPodSandboxResponse
		if decode(c.Answer, &a) != nil {
			return c
		}
		a.Items = slices.DeleteFunc(a.Items, func(s *runtimeapi.PodSandbox) bool { return dropped[types.UID(s.GetMetadata().GetUid())] })
		copied.Answer = encode(&a)
	}
	return &copied
}
