package podsource

import (
	"bytes"
	"fmt"
	"maps"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A change is the difference between two consecutive sets of a source. It is delivered in the order
// of the fields (rule src-10), each list in the order of its set. The pods are those of the sets.
type change struct {
	remove        []*v1.Pod // not in the new set; as in the old one
	add           []*v1.Pod // not in the old set
	update        []*v1.Pod // in both sets, with another spec or metadata
	statusChanged []*v1.Pod // in both sets, with another status
}

// diff compares two sets without duplicate UIDs. Pods are identified by UID; a pod with another name
// is removed and added, since a running pod cannot be renamed.
func diff(old, next []*v1.Pod) change {
	for len(old) > 0 && len(next) > 0 && old[0] == next[0] { // the source has passed the same pods again
		old, next = old[1:], next[1:]
	}
	var c change
	before := byUID(old)
	for _, now := range next {
		was := before[now.UID]
		if was == nil || renamed(was, now) {
			c.add = append(c.add, now)
			continue
		}
		delete(before, now.UID) // what is left was removed
		if was == now {
			continue
		}
		if changed(was, now) {
			c.update = append(c.update, now)
		}
		if !same(&was.Status, &now.Status) {
			c.statusChanged = append(c.statusChanged, now)
		}
	}
	for _, was := range old {
		if before[was.UID] != nil {
			c.remove = append(c.remove, was)
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

// changed reports whether the spec or the metadata of a pod differ. The status and the annotations that
// this node sets are not compared (rules src-6, src-8). The generation is: two changes of the spec that
// cancel each other may arrive together, and the status has to contain the generation of the second.
func changed(a, b *v1.Pod) bool {
	return a.Generation != b.Generation ||
		!maps.Equal(a.Labels, b.Labels) ||
		!sameTime(a, b) ||
		!equality.Semantic.DeepEqual(a.DeletionGracePeriodSeconds, b.DeletionGracePeriodSeconds) ||
		!maps.Equal(ownAnnotations(a), ownAnnotations(b)) ||
		!same(&a.Spec, &b.Spec)
}

// same reports whether two parts of pods are equal. Equal encodings, the usual case, are found
// in a fraction of the time of a comparison by reflection; equal parts may have different ones.
func same[T interface{ Marshal() ([]byte, error) }](a, b T) bool {
	x, err := a.Marshal()
	if err == nil {
		if y, err := b.Marshal(); err == nil && bytes.Equal(x, y) {
			return true
		}
	}
	return equality.Semantic.DeepEqual(a, b)
}

func sameTime(a, b *v1.Pod) bool {
	if a.DeletionTimestamp == nil || b.DeletionTimestamp == nil {
		return a.DeletionTimestamp == b.DeletionTimestamp
	}
	return a.DeletionTimestamp.Equal(b.DeletionTimestamp)
}

// ownAnnotations returns the annotations without those that this node sets.
func ownAnnotations(pod *v1.Pod) map[string]string {
	own := maps.Clone(pod.Annotations)
	maps.DeleteFunc(own, func(key, _ string) bool {
		return key == runtime.ConfigSourceAnnotation || key == runtime.ConfigSeenAnnotation || key == runtime.ConfigStaticAnnotation || key == v1.MirrorPodAnnotationKey
	})
	return own
}

// timeFormat always has nine fractional digits, so that times can be compared as text (rule src-3).
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// An origin is a source of pods.
type origin struct {
	name   string
	static bool // its pods are static
}

// An accepted is a valid pod of a set.
type accepted struct {
	passed   *v1.Pod // as the source has passed it
	pod      *v1.Pod // with annotations
	fullName string
}

// accept returns the valid pods of a set, annotated with their source and the time at which they were
// first received (rules src-2, src-3), and the rejections of the others: those without a UID, a name or
// a namespace, and duplicates. old are the pods of the previous set by UID, and next those of this one: a
// source does not change a pod that it has passed, so that the annotated one is still valid if it passes
// the same pod again.
func accept(source origin, old map[types.UID]accepted, set []*v1.Pod, now time.Time) (pods []*v1.Pod, next map[types.UID]accepted, rejected []rejection) {
	pods = make([]*v1.Pod, 0, len(set))
	next = make(map[types.UID]accepted, len(set))
	names := make(map[string]struct{}, len(set))
	for _, pod := range set {
		if pod == nil {
			continue
		}
		a := old[pod.UID]
		if a.passed != pod {
			a = accepted{pod, annotated(pod, source, a.pod, now), runtime.PodFullName(pod)}
		}
		_, usedUID := next[pod.UID]
		_, usedName := names[a.fullName]
		reason := ""
		switch {
		case pod.UID == "":
			reason = "without a UID"
		case pod.Name == "":
			reason = "without a name"
		case pod.Namespace == "":
			reason = "without a namespace"
		case usedUID:
			reason = fmt.Sprintf("due to duplicate pod UID %q", pod.UID)
		case usedName:
			reason = fmt.Sprintf("due to duplicate pod name %q", pod.Name)
		}
		if reason != "" {
			rejected = append(rejected, newRejection(pod, source.name, reason))
			continue
		}
		next[pod.UID], names[a.fullName] = a, struct{}{}
		pods = append(pods, a.pod)
	}
	return pods, next, rejected
}

// annotated returns a pod with the annotations of its source, and all else of the pod that the source
// has passed; was is its previous version.
func annotated(passed *v1.Pod, source origin, was *v1.Pod, now time.Time) *v1.Pod {
	pod := new(*passed)
	firstSeen := now.Format(timeFormat)
	if was != nil && !renamed(was, pod) {
		firstSeen = was.Annotations[runtime.ConfigSeenAnnotation]
	}
	pod.Annotations = make(map[string]string, len(passed.Annotations)+2)
	maps.Copy(pod.Annotations, passed.Annotations)
	pod.Annotations[runtime.ConfigSourceAnnotation] = source.name
	pod.Annotations[runtime.ConfigSeenAnnotation] = firstSeen
	delete(pod.Annotations, runtime.ConfigStaticAnnotation) // the source may pass any
	if runtime.IsStatic(pod) != source.static {
		pod.Annotations[runtime.ConfigStaticAnnotation] = strconv.FormatBool(source.static)
	}
	return pod
}

// A rejection is a pod of a source that is not delivered. It does not refer to the pod, which belongs
// to the source.
type rejection struct {
	ref     v1.ObjectReference
	message string
}

// newRejection returns a rejection with the message of the kubelet (rule src-4).
func newRejection(pod *v1.Pod, source, reason string) rejection {
	return rejection{runtime.PodRef(pod), fmt.Sprintf("Error validating pod %s_%s(%s) from %s %s, ignoring",
		pod.Name, pod.Namespace, pod.UID, source, reason)}
}
