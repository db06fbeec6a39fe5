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
	var c change
	before, after := byUID(old), byUID(next)
	for _, was := range old {
		if now := after[was.UID]; now == nil || renamed(was, now) {
			c.remove = append(c.remove, was)
		}
	}
	for _, now := range next {
		was := before[now.UID]
		switch {
		case was == now: // the source has passed the same pod again
			continue
		case was == nil || renamed(was, now):
			c.add = append(c.add, now)
			continue
		case changed(was, now):
			c.update = append(c.update, now)
		}
		if !same(&was.Status, &now.Status) {
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

// accept returns the valid pods of a set, annotated with their source and the time at which they were
// first received (rules src-2, src-3), and the rejections of the others: those without a UID, a name or
// a namespace, and duplicates. old is the previous set, and last its pods by those that the source has passed: a
// source does not change a pod that it has passed, so that the annotated one is still valid if it passes
// the same pod again. next are the pods of this set by those that the source has passed.
func accept(source origin, old []*v1.Pod, last map[*v1.Pod]*v1.Pod, set []*v1.Pod, now time.Time) (pods []*v1.Pod, next map[*v1.Pod]*v1.Pod, rejected []rejection) {
	before := byUID(old)
	next = make(map[*v1.Pod]*v1.Pod, len(set))
	uids := make(map[types.UID]bool, len(set))
	names := make(map[string]bool, len(set))
	for _, pod := range set {
		if pod == nil {
			continue
		}
		reason := ""
		switch {
		case pod.UID == "":
			reason = "without a UID"
		case pod.Name == "":
			reason = "without a name"
		case pod.Namespace == "":
			reason = "without a namespace"
		case uids[pod.UID]:
			reason = fmt.Sprintf("due to duplicate pod UID %q", pod.UID)
		case names[runtime.PodFullName(pod)]:
			reason = fmt.Sprintf("due to duplicate pod name %q", pod.Name)
		}
		if reason != "" {
			rejected = append(rejected, newRejection(pod, source.name, reason))
			continue
		}
		uids[pod.UID], names[runtime.PodFullName(pod)] = true, true
		accepted := last[pod]
		if accepted == nil {
			accepted = annotated(pod, source, before[pod.UID], now)
		}
		next[pod] = accepted
		pods = append(pods, accepted)
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
