package podsource

import (
	"fmt"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A change is what takes one SET of a source to the next. It is delivered in
// the order of the fields (src-10), each list in the order of the set it is
// from. The pods are those of the sets, not copies.
type change struct {
	remove        []*v1.Pod // gone: as they were known last
	add           []*v1.Pod // a UID that was not there
	update        []*v1.Pod // known, and different in what counts
	statusChanged []*v1.Pod // known, and with another status (src-7)
}

// diff compares two SETs, in each of which every UID is there once. Pods are
// known by UID; one that comes back under another name, though, is another
// pod, since nothing that runs can be renamed.
func diff(old, next []*v1.Pod) change {
	var c change
	known, wanted := byUID(old), byUID(next)
	for _, was := range old {
		if now := wanted[was.UID]; now == nil || renamed(was, now) {
			c.remove = append(c.remove, was)
		}
	}
	for _, now := range next {
		was := known[now.UID]
		switch {
		case was == nil || renamed(was, now):
			c.add = append(c.add, now)
			continue
		case changed(was, now):
			c.update = append(c.update, now)
		}
		if !equality.Semantic.DeepEqual(was.Status, now.Status) {
			c.statusChanged = append(c.statusChanged, now)
		}
	}
	return c
}

func byUID(pods []*v1.Pod) map[types.UID]*v1.Pod {
	m := make(map[types.UID]*v1.Pod, len(pods))
	for _, pod := range pods {
		m[pod.UID] = pod
	}
	return m
}

func renamed(a, b *v1.Pod) bool { return a.Name != b.Name || a.Namespace != b.Namespace }

// changed reports whether a pod differs in what its owner decides: not in its
// status, which this node writes, nor in what this node notes on it
// (src-6, src-8).
func changed(a, b *v1.Pod) bool {
	return !maps.Equal(a.Labels, b.Labels) ||
		!sameTime(a, b) ||
		!equality.Semantic.DeepEqual(a.DeletionGracePeriodSeconds, b.DeletionGracePeriodSeconds) ||
		!maps.Equal(ownAnnotations(a), ownAnnotations(b)) ||
		!equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

func sameTime(a, b *v1.Pod) bool {
	if a.DeletionTimestamp == nil || b.DeletionTimestamp == nil {
		return a.DeletionTimestamp == b.DeletionTimestamp
	}
	return a.DeletionTimestamp.Equal(b.DeletionTimestamp)
}

// ownAnnotations returns the annotations without the local ones.
func ownAnnotations(pod *v1.Pod) map[string]string {
	own := maps.Clone(pod.Annotations)
	maps.DeleteFunc(own, func(key, _ string) bool {
		return key == runtime.ConfigSourceAnnotation || key == runtime.ConfigSeenAnnotation || key == v1.MirrorPodAnnotationKey
	})
	return own
}

// seenFormat has nine digits in any case, so that the times compare as text
// (src-3).
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// accept returns copies of the pods of a SET that can be told apart, marked
// with their source and with when they were first seen (src-2, src-3), and why
// the others cannot. old is the SET before.
func accept(source string, old, set []*v1.Pod, now time.Time) (pods []*v1.Pod, refused []rejection) {
	known := byUID(old)
	uids := make(map[types.UID]bool, len(set))
	names := make(map[string]bool, len(set))
	for _, pod := range set {
		if pod == nil {
			continue
		}
		why := ""
		switch {
		case pod.UID == "":
			why = "without a UID"
		case pod.Name == "":
			why = "without a name"
		case uids[pod.UID]:
			why = fmt.Sprintf("due to duplicate pod UID %q", pod.UID)
		case names[runtime.PodFullName(pod)]:
			why = fmt.Sprintf("due to duplicate pod name %q", pod.Name) // src-4
		}
		if why != "" {
			refused = append(refused, newRejection(pod, source, why))
			continue
		}
		uids[pod.UID], names[runtime.PodFullName(pod)] = true, true

		pod = pod.DeepCopy()
		seen := now.Format(timeFormat)
		if was := known[pod.UID]; was != nil && !renamed(was, pod) {
			seen = was.Annotations[runtime.ConfigSeenAnnotation]
		}
		if pod.Annotations == nil {
			pod.Annotations = make(map[string]string, 2)
		}
		pod.Annotations[runtime.ConfigSourceAnnotation] = source
		pod.Annotations[runtime.ConfigSeenAnnotation] = seen
		pods = append(pods, pod)
	}
	return pods, refused
}

// A refusal is a pod that a source wants and does not get. It holds no pod:
// that belongs to the source.
type rejection struct {
	ref     v1.ObjectReference
	message string
}

// refuse words a refusal as the kubelet does for duplicate names (src-4).
func newRejection(pod *v1.Pod, source, why string) rejection {
	return rejection{runtime.PodRef(pod), fmt.Sprintf("Error validating pod %s_%s(%s) from %s %s, ignoring",
		pod.Name, pod.Namespace, pod.UID, source, why)}
}
