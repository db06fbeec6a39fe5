package podworker

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A podSet holds the desired pods, and separately the mirror pods, which are not run. A mirror
// pod belongs to the static pod with the same full name. The zero value is empty.
type podSet struct {
	pods    map[types.UID]*v1.Pod
	mirrors map[types.UID]*v1.Pod

	// By full name, the last one stored at the end. There may be several: those of a
	// changed manifest and of the old one.
	podNames    map[string][]types.UID
	mirrorNames map[string][]types.UID
}

func newPodSet() podSet {
	return podSet{
		pods: map[types.UID]*v1.Pod{}, mirrors: map[types.UID]*v1.Pod{},
		podNames: map[string][]types.UID{}, mirrorNames: map[string][]types.UID{},
	}
}

func (s *podSet) of(pod *v1.Pod) (map[types.UID]*v1.Pod, map[string][]types.UID) {
	if runtime.IsMirror(pod) {
		return s.mirrors, s.mirrorNames
	}
	return s.pods, s.podNames
}

// set stores pod and replaces the one with the same UID.
func (s *podSet) set(pod *v1.Pod) {
	if s.pods == nil {
		*s = newPodSet()
	}
	s.remove(pod.UID)
	pods, names := s.of(pod)
	pods[pod.UID] = pod
	name := runtime.PodFullName(pod)
	names[name] = append(names[name], pod.UID)
}

// remove removes the pod or the mirror pod with that UID.
func (s *podSet) remove(uid types.UID) {
	pod := s.pods[uid]
	if pod == nil {
		pod = s.mirrors[uid]
	}
	if pod == nil {
		return
	}
	pods, names := s.of(pod)
	delete(pods, uid)
	name := runtime.PodFullName(pod)
	if names[name] = slices.DeleteFunc(names[name], func(u types.UID) bool { return u == uid }); len(names[name]) == 0 {
		delete(names, name)
	}
}

// named returns the pod with a full name that was stored last, never a mirror pod; nil if
// there is none.
func (s *podSet) named(fullName string) *v1.Pod { return last(s.pods, s.podNames[fullName]) }

// mirrorNamed returns the mirror pod with a full name that was stored last; nil if there is
// none.
func (s *podSet) mirrorNamed(fullName string) *v1.Pod {
	return last(s.mirrors, s.mirrorNames[fullName])
}

func last(pods map[types.UID]*v1.Pod, uids []types.UID) *v1.Pod {
	if len(uids) == 0 {
		return nil
	}
	return pods[uids[len(uids)-1]]
}

// mirrorOf returns the mirror pod of a static pod; nil if there is none.
func (s *podSet) mirrorOf(pod *v1.Pod) *v1.Pod {
	if !runtime.IsStatic(pod) {
		return nil
	}
	return s.mirrorNamed(runtime.PodFullName(pod))
}

// translate returns the UID of the static pod for that of its mirror pod, and any other
// unchanged.
func (s *podSet) translate(uid types.UID) types.UID {
	if mirror, ok := s.mirrors[uid]; ok {
		if pod := s.named(runtime.PodFullName(mirror)); pod != nil {
			return pod.UID
		}
	}
	return uid
}

// translations returns the UID of the mirror pod of each static pod, "" if it has none.
func (s *podSet) translations() map[types.UID]types.UID {
	uids := map[types.UID]types.UID{}
	for uid, pod := range s.pods {
		if !runtime.IsStatic(pod) {
			continue
		}
		uids[uid] = ""
		if mirror := s.mirrorOf(pod); mirror != nil {
			uids[uid] = mirror.UID
		}
	}
	return uids
}

// orphanMirrors returns the mirror pods without a static pod, by UID.
func (s *podSet) orphanMirrors() (orphans []*v1.Pod) {
	for _, uid := range slices.Sorted(maps.Keys(s.mirrors)) {
		if mirror := s.mirrors[uid]; s.named(runtime.PodFullName(mirror)) == nil {
			orphans = append(orphans, mirror)
		}
	}
	return orphans
}
